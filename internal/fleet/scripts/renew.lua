-- KEYS: the lease. ARGV: its number, milliseconds to live. Returns 1 if it has not ended.
local lease = redis.pcall('GET', KEYS[1])
if type(lease) == 'table' and lease.err and not string.match(lease.err, '^WRONGTYPE') then return lease end
if type(lease) ~= 'string' or string.match(lease, '^(%d+) ') ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
