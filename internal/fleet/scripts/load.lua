-- KEYS: the snapshot. ARGV: the size of the longest value, and 1 for the body too.
-- Returns version, record, body; nothing without a record.
local version = versionOf(KEYS[1], ARGV[1])
if not version then return wrong end
if version == 0 then return {} end
return {decimal(version), redis.call('HGET', KEYS[1], 'r'), ARGV[2] == '1' and redis.call('HGET', KEYS[1], 'b')}
