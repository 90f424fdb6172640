-- KEYS: the lease. ARGV: the gate, milliseconds to live. Returns the number of the lease, or 0.
local lease = write('GET', KEYS[1])
-- A lease that does not end by itself, or too late, was made by no gate.
local left = redis.call('PTTL', KEYS[1])
if lease and string.match(lease, '^%d+ ') and left >= 0 and left <= 2 * tonumber(ARGV[2]) then return '0' end
-- The time, so that no number is used again. All scripts have one key: with two, a Cluster that moves
-- their slot to another node refuses them.
local fence = decimal(now())
redis.call('SET', KEYS[1], fence .. ' ' .. ARGV[1], 'PX', ARGV[2])
return fence
