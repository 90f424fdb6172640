package gate

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/netutil"
)

// listen opens the ports.
func (g *Gate) listen() (err error) {
	c := g.config
	if g.listener, err = listen("listen", c.Listen); err != nil {
		return err
	}
	if c.Admin.Listen != "" {
		if g.adminListener, err = listen("admin.listen", c.Admin.Listen); err != nil {
			return err
		}
		// The admin listener must not use up the proxy's file descriptors.
		g.adminListener = netutil.LimitListener(g.descriptors.Listener(g.adminListener), g.descriptors.Other(maxAdminConns))
	}
	for _, l := range []net.Listener{g.listener, g.adminListener} {
		if l != nil {
			g.own = append(g.own, netip.MustParseAddrPort(l.Addr().String()))
		}
	}
	return nil
}

func listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use: is a gate running already? Stop it, or choose another port%s", key, address, howToChoose(key))
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: %s needs privileges: choose a port above 1023", key, address)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
}

// howToChoose says how to give a listener another address.
func howToChoose(key string) string {
	if key == "listen" {
		return ": robotsgate serve --listen 127.0.0.1:PORT"
	}
	return ": start the gate with -c FILE, and with this line in FILE: admin: {listen: 127.0.0.1:PORT}"
}

// WarnDescriptors warns if the process may not open enough files for
// limits.max_connections. A client takes a descriptor, and its origin another.
func (g *Gate) WarnDescriptors() {
	configured := g.config.Limits.MaxConnections
	if clients := g.descriptors.Clients(configured); clients < configured {
		g.log.Warn(fmt.Sprintf("the limit on open files is too low for limits.max_connections: %d clients at once are served; "+
			"raise it (ulimit -n, LimitNOFILE in a systemd unit, ulimits in a compose file), or lower limits.max_connections", clients),
			"open_files", descriptorLimit(), "needed", 2*configured, "limits.max_connections", configured)
	}
}
