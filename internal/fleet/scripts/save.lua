-- KEYS: the snapshot. ARGV: the version that is replaced, milliseconds to live, the size of the longest
-- value, the record, and the body if it changes. Returns 1 if the value was stored.
write('HSTRLEN', KEYS[1], 'r')
local version = versionOf(KEYS[1], ARGV[3]) or 0
if decimal(version) ~= ARGV[1] then return 0 end
-- A version is not less than the time, so that none is used again after the loss of all values.
local fields = {'v', decimal(math.max(version + 1, now())), 'r', ARGV[4]}
if #ARGV == 5 then
  fields[5], fields[6] = 'b', ARGV[5]
elseif version == 0 then
  redis.call('HDEL', KEYS[1], 'b')
end
redis.call('HSET', KEYS[1], unpack(fields))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
