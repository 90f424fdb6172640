package transparent

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Listener accepts connections that nftables has redirected, with redirect or with tproxy.
type Listener struct {
	*net.TCPListener
	// NoTProxy is why tproxy does not work; nil: it does. To receive connections to foreign addresses takes
	// CAP_NET_ADMIN (IP_TRANSPARENT in ip(7)).
	NoTProxy error

	own netip.AddrPort
}

// Listen listens on an address.
func Listen(address string) (*Listener, error) {
	l := &Listener{}
	config := net.ListenConfig{Control: func(network, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			l.NoTProxy = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1)
			if network == "tcp6" && l.NoTProxy == nil {
				l.NoTProxy = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_TRANSPARENT, 1)
			}
		})
	}}
	config.SetMultipathTCP(false) // the rules of nftables are for TCP sockets
	listening, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	l.TCPListener = listening.(*net.TCPListener)
	l.own = netip.MustParseAddrPort(listening.Addr().String())
	return l, nil
}

// Accept returns the next connection, which has a method Redirected.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	local := netip.MustParseAddrPort(c.LocalAddr().String())
	original := originalDestination(c, local)
	return &Conn{c, original, !l.isOwn(original)}, nil
}

// isOwn reports whether a client that has chosen this destination has connected to the listener itself.
func (l *Listener) isOwn(to netip.AddrPort) bool {
	own, addr := l.own.Addr().Unmap(), to.Addr().Unmap()
	return to.Port() == l.own.Port() && (own == addr || own.IsUnspecified() && isLocal(addr))
}

// isLocal reports whether an address is one of this machine's. If these can't be listed it returns true, so that the
// connection is refused.
func isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() {
		return true
	}
	locals, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(locals, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == addr
	})
}

// originalDestination returns the destination that the client has chosen. After redirect the kernel's connection
// tracking knows it; with tproxy, or without any rule, it is the connection's local address.
func originalDestination(c *net.TCPConn, local netip.AddrPort) netip.AddrPort {
	raw, err := c.SyscallConn()
	if err != nil {
		return local
	}
	original := local
	_ = raw.Control(func(fd uintptr) {
		if local.Addr().Unmap().Is4() {
			original = original4(int(fd), local)
		} else {
			original = original6(int(fd), local)
		}
	})
	return original
}

// ip6tOriginalDst is IP6T_SO_ORIGINAL_DST of linux/netfilter_ipv6/ip6_tables.h.
const ip6tOriginalDst = 80

// original4 returns what SO_ORIGINAL_DST says, local if it says nothing. Package unix has no function for a sockaddr
// as the value of an option, but for structures that are large enough for one.
func original4(fd int, local netip.AddrPort) netip.AddrPort {
	v, err := unix.GetsockoptIPv6Mreq(fd, unix.SOL_IP, unix.SO_ORIGINAL_DST)
	if err != nil {
		return local
	}
	sa := v.Multiaddr // a sockaddr_in: family, port and address
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(sa[4:8])), uint16(sa[2])<<8|uint16(sa[3]))
}

func original6(fd int, local netip.AddrPort) netip.AddrPort {
	v, err := unix.GetsockoptIPv6MTUInfo(fd, unix.SOL_IPV6, ip6tOriginalDst)
	if err != nil {
		return local
	}
	port := v.Addr.Port // in network byte order
	return netip.AddrPortFrom(netip.AddrFrom16(v.Addr.Addr), networkOrder(port))
}
