-- KEYS: the stream of notices. ARGV: the position; how many are returned at most; the size
-- of the longest. Returns the new position, and the notices.

-- later reports whether the id of an entry is after another one.
local function later(a, b)
  local a1, a2 = string.match(a, '^(%d+)-(%d+)$')
  local b1, b2 = string.match(b, '^(%d+)-(%d+)$')
  a1, a2, b1, b2 = tonumber(a1), tonumber(a2), tonumber(b1), tonumber(b2)
  return a1 > b1 or a1 == b1 and a2 > b2
end

local entry = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local last, after = entry and entry[1] or '0-0', ARGV[1]
if last == after then return {last} end
-- The stream was lost, or an older one restored: all of its notices count as new.
if later(after, last) then after = '0-0' end
local answer = {last}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '(' .. after, '+', 'COUNT', ARGV[2])) do
  local fields = entry[2]
  if fields[1] == 'n' and #fields == 2 and #fields[2] <= tonumber(ARGV[3]) then answer[#answer + 1] = fields[2] end
end
return answer
