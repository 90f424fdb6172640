-- KEYS: the starts with one key. ARGV, as in a pace.Reservation, times in microseconds: interval, starts, step,
-- since (or -1), longest (or -1), memory, returned (or 0), missed. Returns wait, start, and how many are left.
--
-- It does what Starts.Reserve of policy/pace does. The value is a list of times, the latest first. "TIME:N" are N
-- starts that are counted together. A 0 at the end says that there was no start before.
local interval, most, step = tonumber(ARGV[1]), math.max(tonumber(ARGV[2]), 1), tonumber(ARGV[3])
local since, longest, memory = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local now = now()

local all = {}
local value = write('GET', KEYS[1])
for text in string.gmatch(value and #value <= 2048 and value or '', '[^ ]+') do
  local last, n = integer(text), 1
  if not last then
    last, n = string.match(text, '^(%d+):(%d+)$')
    last, n = integer(last), integer(n)
  end
  all[#all + 1] = {last = last and n and last or math.huge, n = n}
end
-- A list with something else, or with a start that is more than a day in the future, counts as none.
for _, s in ipairs(all) do
  if s.last > now + 86400000000 then all = {} break end
end
if #all == 0 or all[1].last == 0 then all = {{last = 0, n = 0}} end

-- within returns how many starts are in the interval; that of single starts does not matter.
local function within()
  if step == 0 then return 0 end
  local n = 0
  for _, s in ipairs(all) do
    if s.last > 0 and s.last > now - interval then n = n + s.n end
  end
  return n
end

for i, s in ipairs(all) do
  -- The last of a list that was cut stays, since the start before it is not known.
  if s.last > 0 and decimal(s.last) == ARGV[7] and i < #all then table.remove(all, i) break end
end
if since >= 0 and now - since > all[1].last then table.insert(all, 1, {last = now - since, n = 1}) end
-- count adds starts, which are the latest; those in one step are counted together.
local function count(last, n)
  if step > 0 and all[1].last > 0 and math.floor(last / step) == math.floor(all[1].last / step) then
    all[1] = {last = last, n = all[1].n + n}
  else
    table.insert(all, 1, {last = last, n = n})
  end
end
local missed = tonumber(ARGV[8])
if step > 0 and missed > 0 then count(now, missed) end

local start, sum = now, 0
for _, s in ipairs(all) do
  sum = sum + s.n
  if sum >= most and s.last > 0 then start = math.max(now, s.last + interval) break end
end
local wait = start - now
if wait > longest then
  start = 0
else
  count(start, 1)
end
local left = step > 0 and math.max(most - within(), 0) or 0

local texts = {}
for _, s in ipairs(all) do
  if #texts < (step > 0 and 66 or 8) and (step == 0 or s.last > 0 and s.last + interval > now) then
    texts[#texts + 1] = decimal(s.last) .. (s.n > 1 and ':' .. decimal(s.n) or '')
  end
end
if #texts == 0 or texts[1] == '0' then
  redis.call('DEL', KEYS[1])
else
  local ttl = math.ceil((memory + math.max(all[1].last - now, 0)) / 1000) + 1000
  redis.call('SET', KEYS[1], table.concat(texts, ' '), 'PX', decimal(ttl))
end
return {decimal(wait), decimal(start), decimal(left)}
