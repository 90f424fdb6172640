package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"robotsgate/policy"
	"robotsgate/policy/glob"
)

// prohibited says why the operator's egress rules forbid a destination.
type prohibited struct{ why string }

func (p *prohibited) Error() string        { return p.why }
func (p *prohibited) Is(target error) bool { return target == policy.ErrProhibited }

func prohibit(format string, args ...any) error {
	return &prohibited{fmt.Sprintf(format, args...)}
}

// lookupTimeout bounds the lookup of a name that a parent proxy will dial.
const lookupTimeout = 5 * time.Second

// A guard keeps requests from special-purpose addresses (RFC 6890): the gate
// stands where loopback, private networks and cloud metadata are in reach, and
// its clients choose where it connects to.
type guard struct {
	allow     []netip.Prefix
	special   *ssrf.Guardian
	denyHosts []glob.Glob
	ports     []uint16
	own       func() []netip.AddrPort // where the gate itself listens
	names     struct{ allowPrivate, denyHosts, ports string }
}

func newGuard(e Config) *guard {
	g := &guard{
		allow:     e.AllowPrivate,
		special:   ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork()),
		denyHosts: e.DenyHosts,
		ports:     e.Ports,
		own:       e.Own,
	}
	g.names.allowPrivate = cmp.Or(e.Names.AllowPrivate, "the gate's settings")
	g.names.denyHosts = cmp.Or(e.Names.DenyHosts, "the denied hosts")
	g.names.ports = cmp.Or(e.Names.Ports, "the permitted ports")
	return g
}

// name judges what is known before a name is resolved: the name, the port, and
// a literal address.
func (g *guard) name(host, port string) error {
	if slices.ContainsFunc(g.denyHosts, func(d glob.Glob) bool { return d.Match(host) }) {
		return prohibit("host %s is in %s", host, g.names.denyHosts)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return prohibit("port %q is not a number", port)
	}
	if len(g.ports) > 0 && !slices.Contains(g.ports, uint16(n)) {
		return prohibit("port %s is not in %s", port, g.names.ports)
	}
	if !mayBeAddress(host) {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return g.address(netip.AddrPortFrom(addr, uint16(n)))
	}
	return nil
}

// mayBeAddress spares names the error that netip.ParseAddr would make of them.
func mayBeAddress(host string) bool {
	return strings.Contains(host, ":") || host != "" && '0' <= host[len(host)-1] && host[len(host)-1] <= '9'
}

// address judges an address about to be dialled.
func (g *guard) address(to netip.AddrPort) error {
	addr := to.Addr()
	if addr.Zone() != "" {
		return prohibit("address %s has a zone", addr)
	}
	addr = addr.Unmap() // ::ffff:127.0.0.1 is 127.0.0.1
	if addr.IsUnspecified() {
		return prohibit("address %s means this machine", addr)
	}
	if g.isOwn(netip.AddrPortFrom(addr, to.Port())) {
		return prohibit("address %s is the gate's own", to)
	}
	if slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return nil
	}
	if g.special.SafeAddr(addr) != nil {
		return prohibit("address %s is special-purpose; %s can permit it", addr, g.names.allowPrivate)
	}
	return nil
}

func (g *guard) isOwn(to netip.AddrPort) bool {
	if g.own == nil {
		return false
	}
	for _, own := range g.own() {
		if own.Port() != to.Port() {
			continue
		}
		if own.Addr().Unmap() == to.Addr() {
			return true
		}
		if own.Addr().IsUnspecified() && isLocal(to.Addr()) {
			return true
		}
	}
	return false
}

// isLocal reports whether an address is one of this machine's.
func isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	locals, err := net.InterfaceAddrs()
	if err != nil {
		return true // an error closes
	}
	return slices.ContainsFunc(locals, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == addr
	})
}

// control is a net.Dialer's ControlContext: it sees the address that is really
// dialled, after any resolving, so that no name can hide it.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return prohibit("address %q can't be read", address)
	}
	return g.address(to)
}

// resolved judges where a name leads when a parent proxy will do the dialling.
// A name that does not resolve here passes: only the parent knows it. So whoever
// controls a name's servers can answer the two differently; what the parent then
// reaches is the parent's to guard.
func (g *guard) resolved(host, port string) error {
	// Not under the client's context: its leaving says nothing about the name.
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if exhausted(err) {
		return err // whether the name resolves is not known
	}
	if err != nil {
		return nil
	}
	n, _ := strconv.ParseUint(port, 10, 16)
	var errs []error
	for _, a := range addrs {
		errs = append(errs, g.address(netip.AddrPortFrom(a, uint16(n))))
	}
	return errors.Join(errs...)
}
