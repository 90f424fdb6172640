package config

import (
	"fmt"
	"strconv"
)

// checkSupported refuses what the configuration can say but this version can't
// do yet: to accept it silently would be worse. When a feature comes, its line
// goes.
func (c *Config) checkSupported() {
	d := Default()
	for _, k := range []struct {
		path        string
		value, only string
	}{
		{"unknown_clients", string(c.UnknownClients), string(d.UnknownClients)},
		{"log.audit_required", strconv.FormatBool(c.Log.AuditRequired), "false"},
	} {
		if k.value != k.only {
			c.source.mistake(k.path, "%s is not supported by this version: remove the line or leave %s", k.value, k.only)
		}
	}
	for i, crawler := range c.Crawlers {
		if crawler.Login != (Login{}) {
			c.source.mistake(fmt.Sprintf("crawlers[%d].login", i), "logins are not supported by this version: remove the line, and tell clients by sources or user_agents")
		}
	}
}
