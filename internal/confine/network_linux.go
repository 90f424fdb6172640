//go:build linux && (amd64 || arm64)

package confine

import (
	"encoding/binary"
	"net/netip"

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
func (s socket) open() (fd int, err error) {
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	if s.Addr.Addr().Is6() {
		family = unix.AF_INET6
	}
	if s.UDP {
		kind = unix.SOCK_DGRAM
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, err
	}
	if err := s.configure(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (s socket) configure(fd int) error {
	var addr unix.Sockaddr
	if s.Addr.Addr().Is6() {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			return err
		}
		// In IPv6 a route does not make an address one that can be bound, as it does in IPv4.
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1); err != nil {
			return err
		}
		addr = &unix.SockaddrInet6{Port: int(s.Addr.Port()), Addr: s.Addr.Addr().As16()}
	} else {
		addr = &unix.SockaddrInet4{Port: int(s.Addr.Port()), Addr: s.Addr.Addr().As4()}
	}
	if err := unix.Bind(fd, addr); err != nil {
		return err
	}
	switch {
	case !s.UDP:
		return unix.Listen(fd, listenBacklog)
	case s.Addr.Addr().Is6():
		// An answer comes from the address that was asked.
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
}

const listenBacklog = 4096
