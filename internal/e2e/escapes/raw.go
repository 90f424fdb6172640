//go:build linux && (amd64 || arm64)

package escapes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// rawSockets has packets that the attempt makes itself, and ways to see those of others.
var rawSockets = []Attempt{
	{Name: "ping4", Tries: "carry data in an echo request, with a ping socket", Needs: []string{"ping"}, try: ping(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)},
	{Name: "ping6", Tries: "carry data in an ICMPv6 echo request, with a ping socket", Needs: []string{"ping", "ipv6"}, try: ping(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6)},
	{Name: "raw-icmp4", Tries: "send ICMP with a raw socket", Root: true, Needs: []string{"raw"}, try: ping(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	{Name: "raw-icmp6", Tries: "send ICMPv6 with a raw socket", Root: true, Needs: []string{"raw", "ipv6"}, try: ping(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)},
	{Name: "raw-udp", Tries: "send an IP packet of its own making", Root: true, try: rawUDP},
	{Name: "packet-capture", Tries: "read the packets of others with a packet socket", Root: true, Needs: []string{"beacon"}, try: capture},
	{Name: "raw-capture", Tries: "read the datagrams of others with a raw socket", Root: true, Needs: []string{"beacon"}, try: captureRaw},
}

// otherFamilies has sockets of families other than the Internet's and Unix.
var otherFamilies = []Attempt{
	{Name: "netlink-process", Tries: "send a message to another process over netlink", Needs: []string{"netlink"}, try: netlinkMessage},
	{Name: "io-uring-tcp", Tries: "make and connect a TCP socket with io_uring", Needs: []string{"io_uring"}, try: uringTCP},
	{Name: "io-uring-unix", Tries: "make and connect a Unix socket with io_uring", Needs: []string{"io_uring"}, try: uringUnix},
	{Name: "i386-calls", Tries: "connect by the system calls of 32-bit programs", Needs: []string{"i386"}, try: int80TCP},
	{Name: "i386-program", Tries: "run a 32-bit program that connects", Needs: []string{"i386"}, try: elf32TCP},
	{Name: "x32-calls", Tries: "connect by the system calls of x32 programs", Unproven: "few kernels have x32", try: x32TCP},
	{Name: "vsock", Tries: "connect over vsock", Unproven: "few kernels have a vsock loopback", try: func(t *trial) error {
		return t.through(unix.AF_VSOCK, unix.SOCK_STREAM, 0, &unix.SockaddrVM{CID: unix.VMADDR_CID_LOCAL, Port: uint32(t.Port)})
	}},
	{Name: "sctp", Tries: "connect with SCTP", Unproven: "few kernels have SCTP", try: func(t *trial) error {
		return t.through(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, t.Loopback())
	}},
	{Name: "dccp", Tries: "connect with DCCP", Unproven: "few kernels have DCCP", try: func(t *trial) error {
		return t.through(unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP, t.Loopback())
	}},
}

func checksum(data []byte) uint16 {
	var sum uint32
	for ; len(data) > 1; data = data[2:] {
		sum += uint32(data[0])<<8 | uint32(data[1])
	}
	if len(data) == 1 {
		sum += uint32(data[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// ping sends an echo request with the token.
func ping(family, kind, protocol int) func(*trial) error {
	return func(t *trial) error {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return fmt.Errorf("socket: %w", err)
		}
		defer unix.Close(fd)
		message := append([]byte{8, 0, 0, 0, 0, 1, 0, 1}, t.Token()...)
		var to unix.Sockaddr = &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
		if family == unix.AF_INET6 {
			message[0] = 128 // the kernel adds the checksum
			to = &unix.SockaddrInet6{Addr: netip.IPv6Loopback().As16()}
		} else {
			binary.BigEndian.PutUint16(message[2:], checksum(message))
		}
		return unix.Sendto(fd, message, 0, to)
	}
}

// udpPacket returns an IPv4 packet with a UDP datagram, without a UDP checksum.
func udpPacket(from, to [4]byte, port int, payload string) []byte {
	p := make([]byte, 28, 28+len(payload))
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(p[2:], uint16(28+len(payload)))
	copy(p[12:], from[:])
	copy(p[16:], to[:])
	binary.BigEndian.PutUint16(p[10:], checksum(p[:20]))
	binary.BigEndian.PutUint16(p[20:], 4321)
	binary.BigEndian.PutUint16(p[22:], uint16(port))
	binary.BigEndian.PutUint16(p[24:], uint16(8+len(payload)))
	return append(p, payload...)
}

func rawUDP(t *trial) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	home := [4]byte{127, 0, 0, 1}
	return unix.Sendto(fd, udpPacket(home, home, t.Port, t.Token()), 0, &unix.SockaddrInet4{Addr: home})
}

// captureFrom reads packets until one has a secret.
func (t *trial) captureFrom(fd int) error {
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	packet := make([]byte, 65536)
	for {
		n, _, err := unix.Recvfrom(fd, packet, 0)
		if err != nil {
			return err
		}
		if t.read(packet[:n]) == nil {
			return nil
		}
	}
}

func capture(t *trial) error {
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8 // in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	return t.captureFrom(fd)
}

func captureRaw(t *trial) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	return t.captureFrom(fd)
}

// netlinkMessage sends a message to the socket that the target has bound (netlink(7), NETLINK_USERSOCK).
func netlinkMessage(t *trial) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_USERSOCK)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	message := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(t.Token())))
	message = append(append(message, make([]byte, unix.NLMSG_HDRLEN-4)...), t.Token()...)
	return unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: netlinkPort})
}

// netlinkPort is the address of the target's netlink socket.
const netlinkPort = 0x7267_0001

// x32TCP makes a socket by the number of the x32 call (syscall(2), "Architecture-specific requirements").
func x32TCP(t *trial) error {
	const x32 = 0x40000000
	fd, _, errno := unix.Syscall(x32+unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)
	if errno != 0 {
		return fmt.Errorf("socket: %w", errno)
	}
	defer unix.Close(int(fd))
	return errors.Join(unix.Connect(int(fd), t.Loopback()), unix.Sendto(int(fd), []byte(t.Token()), 0, nil))
}
