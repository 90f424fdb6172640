package admin

import (
	"fmt"

	"robotsgate/internal/field"
	"robotsgate/policy/canonical"
)

// Config says where health, metrics and the status page are served.
type Config struct {
	Listen string   `yaml:"listen" restart:"yes" doc:"host:port, such as 127.0.0.1:9310"` // "": nowhere
	Hosts  []string `yaml:"hosts" doc:"a host name, such as gate.example"`                // further values of Host for which the page and the API are served
}

// Default returns the address that no other machine reaches.
func Default() Config { return Config{Listen: "127.0.0.1:9310"} }

// Check reports Hosts that are no names, and makes the others canonical. The caller checks Listen.
func (c *Config) Check(m *field.Mistakes) {
	for i, host := range c.Hosts {
		name, err := canonical.Host(host)
		m.Require(err == nil, fmt.Sprintf("hosts[%d]", i), "%.80q is no host name: %v", host, err)
		c.Hosts[i] = name
	}
}
