-- KEYS: the lease. ARGV: the mark of a holder, milliseconds to live. Returns 1 if the lease is the holder's now.
local left = redis.call('PTTL', KEYS[1])
-- A lease that does not end by itself, or too late, was made by no gate.
if left >= 0 and left <= tonumber(ARGV[2]) and redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return {'0'} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'1'}
