-- KEYS: a sorted set of members by the time at which they were added last. ARGV: a member to add, or nothing;
-- microseconds for which members stay; how many are returned at most. Returns 1 if the member is new, and the
-- members, each with its time.
local now, keep, new = now(), tonumber(ARGV[2]), 0
-- The first write of a script is the one that fails when the store is out of memory.
if ARGV[1] ~= '' then new = write('ZADD', KEYS[1], decimal(now), ARGV[1]) end
write('ZREMRANGEBYSCORE', KEYS[1], '-inf', decimal(now - keep))
redis.call('ZREMRANGEBYSCORE', KEYS[1], decimal(now + keep), '+inf') -- the clock was set back
redis.call('PEXPIRE', KEYS[1], math.ceil(keep / 1000))
local answer = redis.call('ZREVRANGE', KEYS[1], 0, tonumber(ARGV[3]) - 1, 'WITHSCORES')
table.insert(answer, 1, decimal(new))
return answer
