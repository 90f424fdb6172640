-- KEYS: the lease, the snapshot. ARGV: the gate, milliseconds to live, milliseconds that the number of
-- the lease is remembered if there is no snapshot. Returns the number of the lease, or 0.
local lease = write('GET', KEYS[1])
if lease and string.match(lease, '^%d+ ') then return '0' end
local last = integer(write('HGET', KEYS[2], 'f')) or 0
local fence = decimal(math.max(last + 1, now()))
redis.call('HSET', KEYS[2], 'f', fence)
redis.call('PEXPIRE', KEYS[2], ARGV[3], 'NX')
redis.call('SET', KEYS[1], fence .. ' ' .. ARGV[1], 'PX', ARGV[2])
return fence
