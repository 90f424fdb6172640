-- KEYS: the stream of notices. ARGV: the notice, how many are kept, milliseconds to live.
local added = redis.pcall('XADD', KEYS[1], 'MAXLEN', ARGV[2], '*', 'n', ARGV[1])
if type(added) == 'table' and added.err and string.match(added.err, '^WRONGTYPE') or
   type(added) == 'table' and added.err and string.match(added.err, '^ERR') then
  -- The key has a value of another type, or a stream that takes no more entries.
  redis.call('DEL', KEYS[1])
  added = redis.pcall('XADD', KEYS[1], 'MAXLEN', ARGV[2], '*', 'n', ARGV[1])
end
if type(added) == 'table' and added.err then return added end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
