-- KEYS: the clock of an origin. ARGV, all in microseconds: interval, since (or -1), longest (or -1),
-- memory, returned (or 0). Returns wait and start.
--
-- The clock is a list of starts, the latest first, so that a start that is given back leaves the
-- start before it. A 0 at the end says that there was none before; the list is cut after 8.
local interval, since, longest, memory = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now = now()

local starts = {}
local clock = write('GET', KEYS[1])
for start in string.gmatch(clock and #clock <= 256 and clock or '', '[^ ]+') do
  starts[#starts + 1] = integer(start) or math.huge
end
-- A clock that is not a list of numbers, or more than a day in the future, counts as none.
for i, start in ipairs(starts) do
  if start > now + 86400000000 then starts = {} break end
end
if #starts == 0 or starts[1] == 0 then starts = {0} end

local function store()
  if starts[1] == 0 then
    redis.call('DEL', KEYS[1])
    return
  end
  local texts = {}
  for i = 1, math.min(#starts, 8) do texts[i] = decimal(starts[i]) end
  local ttl = math.ceil((memory + math.max(starts[1] - now, 0)) / 1000) + 1000
  redis.call('SET', KEYS[1], table.concat(texts, ' '), 'PX', decimal(ttl))
end

for i, start in ipairs(starts) do
  -- The last of a list that was cut stays, since the start before it is not known.
  if start > 0 and decimal(start) == ARGV[5] and i < #starts then table.remove(starts, i) break end
end
if since >= 0 and now - since > starts[1] then table.insert(starts, 1, now - since) end
local start = now
if starts[1] > 0 then start = math.max(now, starts[1] + interval) end
local wait = start - now
if wait <= longest then table.insert(starts, 1, start) else start = 0 end
store()
return {decimal(wait), decimal(start)}
