-- KEYS: the snapshot. ARGV: the size of the longest value, and 1 for the body too.
-- Returns the store's time in microseconds, version, record, body; nothing after the time without a record.
local version = versionOf(KEYS[1], ARGV[1])
if not version then return wrong end
if version == 0 then return {decimal(now())} end
return {decimal(now()), decimal(version), redis.call('HGET', KEYS[1], 'r'), ARGV[2] == '1' and redis.call('HGET', KEYS[1], 'b')}
