-- KEYS: the lease. ARGV: the mark of its holder.
if write('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return {'1'}
