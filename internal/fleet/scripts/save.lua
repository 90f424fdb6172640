-- KEYS: a value. ARGV: the first bytes of the value that is replaced, or nothing; the value; milliseconds to live; the size of
-- the longest. Returns 1 if the value was stored.
if write('STRLEN', KEYS[1]) <= tonumber(ARGV[4]) and redis.call('GETRANGE', KEYS[1], 0, 31) ~= ARGV[1] then return {'0'} end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return {'1'}
