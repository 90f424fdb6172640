-- KEYS: the gates. ARGV: the gate's id, its announcement or nothing if it leaves, milliseconds after which
-- a gate is removed, how many gates and how long announcements are returned. Returns the store's time
-- in microseconds, the gate's id and the announcement that it had before, and those of the others.
local time = now()
local keep, most, longest = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local ms = math.floor(time / 1000)
local before = redis.pcall('HGET', KEYS[1], ARGV[1])
before = type(before) == 'string' and string.match(before, '^%d+ (.*)$') or ''
if ARGV[2] == '' then
  write('HDEL', KEYS[1], ARGV[1])
else
  write('HSET', KEYS[1], ARGV[1], decimal(ms) .. ' ' .. ARGV[2])
end
local answer, all = {decimal(time), ARGV[1], #before <= longest and before or ''}, redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local id = all[i]
  local digits, text = string.match(all[i + 1], '^(%d+) (.*)$')
  local at = integer(digits)
  if id == ARGV[1] then
    -- It is the first.
  elseif at and math.abs(ms - at) <= keep and #answer < 2 * most and #id <= 128 and #text <= longest then
    answer[#answer + 1], answer[#answer + 2] = id, text
  else
    redis.call('HDEL', KEYS[1], id)
  end
end
redis.call('PEXPIRE', KEYS[1], 2 * keep)
return answer
