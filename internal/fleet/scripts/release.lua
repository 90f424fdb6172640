-- KEYS: the lease. ARGV: its number.
local lease = redis.pcall('GET', KEYS[1])
if type(lease) == 'table' and lease.err and not string.match(lease.err, '^WRONGTYPE') then return lease end
if type(lease) == 'string' and string.match(lease, '^(%d+) ') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
