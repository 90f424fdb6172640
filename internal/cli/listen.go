package cli

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/netutil"
)

// listen opens the ports.
func (g *gate) listen() (err error) {
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
	g.own = addressesOf(g.listener, g.adminListener)
	return nil
}

// addresses returns the gate's own addresses. It refuses to send requests there.
func (g *gate) addresses() []netip.AddrPort { return g.own }

// addressesOf returns the addresses of listeners.
func addressesOf(listeners ...net.Listener) (all []netip.AddrPort) {
	for _, l := range listeners {
		if l == nil {
			continue
		}
		if a, err := netip.ParseAddrPort(l.Addr().String()); err == nil {
			all = append(all, a)
		}
	}
	return all
}

func listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use: is a gate running already? Choose another port, or stop what uses this one", key, address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: %s needs privileges: choose a port above 1023", key, address)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
}
