package config

import "strconv"

// checkSupported refuses what the configuration can say but this version can't
// do yet: to accept it silently would be worse. When a feature comes, its line
// goes.
func (c *Config) checkSupported() {
	for _, k := range []struct {
		path        string
		value, only string
	}{
		{"log.audit_required", strconv.FormatBool(c.Log.AuditRequired), "false"},
	} {
		if k.value != k.only {
			c.source.mistake(k.path, "%s is not supported by this version: remove the line or leave %s", k.value, k.only)
		}
	}
}
