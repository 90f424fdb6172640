-- KEYS: a value. ARGV: the size of the longest. Returns the store's time in microseconds, why no gate has written the
-- value, and the value.
local size = redis.pcall('STRLEN', KEYS[1])
if type(size) == 'table' then
  if string.match(size.err, '^WRONGTYPE') then return {decimal(now()), 'the key has a value of another type', ''} end
  return size
end
if size > tonumber(ARGV[1]) then return {decimal(now()), 'the value is too long', ''} end
return {decimal(now()), '', redis.call('GET', KEYS[1]) or ''}
