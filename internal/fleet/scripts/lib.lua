-- Functions for all scripts: each is sent with this file before it. Scripts answer with texts.

-- now returns the store's time in microseconds.
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- integer returns the number in a text, or nil if it is not a decimal number that Lua has exactly.
local function integer(text)
  if type(text) == 'string' and #text <= 16 and string.match(text, '^%d+$') then
    local n = tonumber(text)
    if n <= 9e15 then return n end
  end
  return nil
end

-- decimal is the inverse of integer.
local function decimal(n) return string.format('%.0f', n) end

-- write calls a command. A key with a value of another type is deleted first.
local function write(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err and string.match(answer.err, '^WRONGTYPE') then
    redis.call('DEL', key)
    answer = redis.pcall(command, key, ...)
  end
  if type(answer) == 'table' and answer.err then error(answer) end
  return answer
end
