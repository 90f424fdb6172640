-- KEYS: the gates. Returns the version of Redis that the store is compatible with, the store's time in
-- microseconds, and ids and announcements.
local answer, all = {tostring(redis.REDIS_VERSION), decimal(now())}, redis.call('HGETALL', KEYS[1])
for i = 1, math.min(#all, 2000), 2 do
  answer[i + 2], answer[i + 3] = string.sub(all[i], 1, 128), string.sub(all[i + 1], 1, 8192)
end
return answer
