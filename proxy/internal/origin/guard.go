package origin

import (
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
)

// A prohibited error says why the egress rules forbid a destination.
type prohibited struct{ why, advice string }

func (p *prohibited) Error() string        { return p.why }
func (p *prohibited) Is(target error) bool { return target == ErrProhibited }
func (p *prohibited) OriginAtFault() bool  { return true }
func (p *prohibited) Outage() bool         { return false }

func prohibit(format string, args ...any) error {
	return &prohibited{why: fmt.Sprintf(format, args...)}
}

// lookupTimeout bounds the lookup of a name that a parent proxy will dial.
const lookupTimeout = 5 * time.Second

// A guard refuses connections to special-purpose addresses (RFC 6890) and other forbidden destinations. The gate can
// reach loopback, private networks and cloud metadata, and its clients choose where it connects to.
type guard struct {
	Config
	special *ssrf.Guardian
}

func newGuard(c Config) *guard {
	return &guard{c, ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())}
}

// lists checks a host and a port by DenyHosts and Ports.
func (g *guard) lists(host, port string) error {
	for _, denied := range g.DenyHosts {
		if denied.Match(host) {
			return prohibit("host %s is in egress.deny_hosts", host)
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return prohibit("port %q is not a number", port)
	}
	if len(g.Ports) > 0 && !slices.Contains(g.Ports, int(n)) {
		return prohibit("port %s is not in egress.ports", port)
	}
	return nil
}

// name checks what is known before a name is resolved: the name, the port, and a literal address.
func (g *guard) name(host, port string) error {
	if err := g.lists(host, port); err != nil || !mayBeAddress(host) {
		return err
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		n, _ := strconv.ParseUint(port, 10, 16)
		return g.address(netip.AddrPortFrom(addr, uint16(n)))
	}
	return nil
}

// mayBeAddress is false for most names. For each of them netip.ParseAddr would allocate an error.
func mayBeAddress(host string) bool {
	return strings.Contains(host, ":") || host != "" && '0' <= host[len(host)-1] && host[len(host)-1] <= '9'
}

// address checks an address that is about to be dialled.
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
	if slices.ContainsFunc(g.AllowPrivate, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return nil
	}
	if g.special.SafeAddr(addr) == nil {
		return nil
	}
	return &prohibited{
		why:    fmt.Sprintf("address %s is special-purpose; egress.allow_private can permit it", addr),
		advice: fmt.Sprintf("This entry of the gate's configuration does: egress: {allow_private: [%q]}", netip.PrefixFrom(addr, addr.BitLen())), // in quotes, since YAML would read the colons of IPv6
	}
}

// isOwn reports whether the gate listens on an address.
func (g *guard) isOwn(to netip.AddrPort) bool {
	return g.Own != nil && slices.ContainsFunc(g.Own(), func(own netip.AddrPort) bool {
		return own.Port() == to.Port() && (own.Addr().Unmap() == to.Addr() || own.Addr().IsUnspecified() && isLocal(to.Addr()))
	})
}

// isLocal reports whether an address is one of this machine's.
func isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	locals, err := net.InterfaceAddrs()
	if err != nil {
		return true // an error denies
	}
	return slices.ContainsFunc(locals, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == addr
	})
}

// control is a net.Dialer's ControlContext: it gets the address that is dialled after the name has been resolved.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return prohibit("address %q can't be read", address)
	}
	return g.address(to)
}

// resolved checks the addresses of a name that a parent proxy will resolve and dial. A name that does not
// resolve here is permitted, since only the parent may know it. A name's servers can answer the gate and the parent
// differently: the parent has to guard what it dials.
func (g *guard) resolved(host, port string) error {
	// Not under the request's context: if its client leaves, that says nothing about the name.
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if isShortage(err) {
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
