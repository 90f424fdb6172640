package cli

import "fmt"

// warnDescriptors warns if the process may not open enough files for
// limits.max_connections. A client takes a descriptor, and its origin another.
func (g *gate) warnDescriptors() {
	configured := g.config.Limits.MaxConnections
	if clients := g.descriptors.Clients(configured); clients < configured {
		g.log.Warn(fmt.Sprintf("the limit on open files is too low for limits.max_connections: %d clients at once are served; "+
			"raise it (ulimit -n, LimitNOFILE in a systemd unit, ulimits in a compose file), or lower limits.max_connections", clients),
			"open_files", descriptorLimit(), "needed", 2*configured, "limits.max_connections", configured)
	}
}
