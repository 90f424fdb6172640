-- KEYS: the lease. ARGV: the gate, milliseconds to live. Returns the number of the lease, or 0.
local lease = write('GET', KEYS[1])
if lease and string.match(lease, '^%d+ ') then return '0' end
-- The time, so that no number is used again. All scripts have one key: with two, a Cluster that moves
-- their slot to another node refuses them.
local fence = decimal(now())
redis.call('SET', KEYS[1], fence .. ' ' .. ARGV[1], 'PX', ARGV[2])
return fence
