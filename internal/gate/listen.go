package gate

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/netutil"

	"robotsgate/internal/transparent"
)

// listen opens the ports.
func (g *Gate) listen() (err error) {
	c := g.config
	if g.listener == nil {
		if g.listener, err = listen("listen", c.Listen); err != nil {
			return err
		}
	}
	if g.transparent == nil && c.ListenTransparent != "" {
		l, err := transparent.Listen(c.ListenTransparent)
		if err != nil {
			return listenError("listen_transparent", c.ListenTransparent, err)
		}
		g.transparent = l
		if l.NoTProxy != nil {
			g.log.Info("listen_transparent serves connections that nftables redirects; for tproxy the process needs CAP_NET_ADMIN", "error", l.NoTProxy)
		}
	}
	if c.Admin.Listen != "" {
		if g.adminListener, err = listen("admin.listen", c.Admin.Listen); err != nil {
			return err
		}
		// The admin listener must not use up the proxy's file descriptors.
		g.adminListener = netutil.LimitListener(g.adminListener, maxAdminConns)
	}
	for _, l := range []net.Listener{g.listener, g.transparent, g.adminListener} {
		if l == nil {
			continue
		}
		if a, err := netip.ParseAddrPort(l.Addr().String()); err == nil { // a listener of Options may have no such address
			g.own = append(g.own, a)
		}
	}
	return nil
}

func listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError(key, address, err)
	}
	return l, nil
}

func listenError(key, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %s is in use: is a gate running already? Stop it, or choose another port", key, address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: this machine has no such address as %s: choose one of its own, or 127.0.0.1", key, address)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: %s needs privileges: choose a port above 1023", key, address)
	}
	return fmt.Errorf("%s: %w", key, err)
}
