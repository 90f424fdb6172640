package config

import "fmt"

// checkSupported refuses what the configuration can say but this version can't
// do yet: to accept it silently would be worse. When a feature comes, its line
// goes.
func (c *Config) checkSupported() {
	d := Default()
	for _, k := range []struct {
		path  string
		used  bool
		leave string
	}{
		{"unknown_clients", c.UnknownClients != d.UnknownClients, "allow"},
		{"robots.keep", c.Robots.Keep != d.Robots.Keep, short(d.Robots.Keep)},
		{"robots.disk_bytes", c.Robots.DiskBytes != d.Robots.DiskBytes, d.Robots.DiskBytes.String()},
		{"log.audit_required", c.Log.AuditRequired, "false"},
	} {
		if k.used {
			c.source.mistake(k.path, "another value than %s is not supported by this version: remove the line", k.leave)
		}
	}
	for i, crawler := range c.Crawlers {
		if crawler.Login != (Login{}) {
			c.source.mistake(fmt.Sprintf("crawlers[%d].login", i), "logins are not supported by this version: remove the line and use sources or user_agents")
		}
	}
}
