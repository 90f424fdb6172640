//go:build linux && (amd64 || arm64)

package confine

import (
	"cmp"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// setUpNetwork sets the loopback interface up, and makes every address a local one: a connection to
// any address reaches a listener in this namespace, if one has the port, and is refused at once if none
// has. No packet can leave, since there is no other interface.
func setUpNetwork() error {
	index, err := setLoopbackUp()
	if err != nil {
		return failed("set up the loopback interface", err)
	}
	// Connections come from the loopback address, as those of clients without confinement do.
	if err := addLocalRoute(unix.AF_INET, index, loopback4); err != nil {
		return failed("add a route for all addresses", err)
	}
	// A system may have no IPv6, or not on loopback. Then there is nothing to catch there.
	_ = addLocalRoute(unix.AF_INET6, index, loopback6)
	return nil
}

// setLoopbackUp returns the interface's index; netdevice(7).
func setLoopbackUp() (index uint32, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request); err != nil {
		return 0, err
	}
	index = request.Uint32()
	request.SetUint16(unix.IFF_UP)
	return index, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// addLocalRoute adds the route "local 0.0.0.0/0 dev lo src source", or that of IPv6; rtnetlink(7).
func addLocalRoute(family uint8, index uint32, source netip.Addr) error {
	body := encoded(unix.RtMsg{
		Family: family, Table: unix.RT_TABLE_LOCAL, Protocol: unix.RTPROT_BOOT,
		Scope: unix.RT_SCOPE_HOST, Type: unix.RTN_LOCAL,
	})
	body = appendAttribute(body, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, index))
	body = appendAttribute(body, unix.RTA_PREFSRC, source.AsSlice())
	return netlink(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, body)
}

// appendAttribute appends an attribute of a multiple of 4 bytes, which needs no padding.
func appendAttribute(to []byte, kind uint16, value []byte) []byte {
	to = binary.NativeEndian.AppendUint16(to, uint16(unix.SizeofRtAttr+len(value)))
	to = binary.NativeEndian.AppendUint16(to, kind)
	return append(to, value...)
}

// open opens a socket. One of TCP listens then.
func (s socket) open() (*os.File, error) {
	version := "4"
	if s.Addr.Addr().Is6() {
		version = "6"
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var optionErr error
		err := c.Control(func(fd uintptr) { optionErr = s.configure(int(fd)) })
		return cmp.Or(err, optionErr)
	}}
	config.SetMultipathTCP(false) // there is one path
	if s.UDP {
		conn, err := config.ListenPacket(context.Background(), "udp"+version, s.Addr.String())
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return conn.(*net.UDPConn).File()
	}
	l, err := config.Listen(context.Background(), "tcp"+version, s.Addr.String())
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.(*net.TCPListener).File()
}

// configure sets options before the socket gets its address.
func (s socket) configure(fd int) error {
	v6 := s.Addr.Addr().Is6()
	if v6 {
		// In IPv6 a route does not make an address one that can be bound, as it does in IPv4.
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1); err != nil {
			return err
		}
	}
	// An answer over UDP comes from the address that was asked.
	switch {
	case s.UDP && v6:
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	case s.UDP:
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	}
	return nil
}
