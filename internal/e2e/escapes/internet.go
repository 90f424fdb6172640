//go:build linux && (amd64 || arm64)

package escapes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"robotsgate/internal/confine/attempts"
)

// internet has connections and datagrams to the addresses of this machine and its network.
var internet = []Attempt{
	{Name: "tcp4-other-loopback", Tries: "connect to 127.83.0.2", try: dial("tcp4", "127.83.0.2")},
	{Name: "tcp4-zero", Tries: "connect to 0.0.0.0", try: dial("tcp4", "0.0.0.0")},
	{Name: "tcp6-zero", Tries: "connect to ::", Needs: []string{"ipv6"}, try: dial("tcp6", "::")},
	{Name: "tcp6-mapped", Tries: "connect to ::ffff:127.0.0.1 with an IPv6 socket", Needs: []string{"ipv6"}, try: tcpMapped},
	{Name: "tcp6-link-local", Tries: "connect to this machine's link-local address", Needs: []string{"link-local"}, try: func(t *trial) error { return t.dial("tcp6", "link-local") }},
	{Name: "tcp-fast-open", Tries: "send data with the SYN", try: tcpFastOpen},
	{Name: "tcp-daemon", Tries: "connect from a process that has left its session and its parent", try: func(t *trial) error { return t.stage(0, "daemon") }},
	{Name: "mptcp", Tries: "connect with Multipath TCP", Needs: []string{"mptcp"}, try: mptcp},
	{Name: "udp4-broadcast", Tries: "send a UDP broadcast", Needs: []string{"multicast"}, try: udpBroadcast},
	{Name: "udp4-multicast", Tries: "send UDP to the multicast group of mDNS", Needs: []string{"multicast"}, try: udpMulticast4},
	{Name: "udp6-multicast", Tries: "send UDP to all nodes of the link", Needs: []string{"multicast", "ipv6"}, try: udpMulticast6},
	{Name: "udplite", Tries: "send UDP-Lite to 127.0.0.1", Needs: []string{"udplite"}, try: udpLite},
	{Name: "http-no-variables", Tries: "send an HTTP request with all proxy variables cleared", try: withoutProxy},
	{Name: "http-other-proxy", Tries: "use another proxy than the gate", try: otherProxy},
	{Name: "http-no-proxy", Tries: "exempt every host from the proxy with NO_PROXY", try: noProxy},
	{Name: "https-no-variables", Tries: "speak TLS on a port that the gate does not catch", try: func(t *trial) error {
		return t.tls(t.Host("127.0.0.1"), t.Token()+"allowed.example", "allowed.example")
	}},
}

// names has queries to the resolver outside.
var names = []Attempt{
	{Name: "dns-no-dns", Tries: "send the resolver's port data that are no query", Needs: []string{"resolver"}, try: func(t *trial) error { return t.Send("tcp", t.At["resolver"], t.Token()) }},
}

func dial(network, host string) func(*trial) error {
	return func(t *trial) error { return t.dial(network, host) }
}

func (t *trial) dial(network, host string) error { return t.Send(network, t.Host(host), t.Token()) }

// socket returns a connected socket of a family, type and protocol.
func socket(family, kind, protocol int, to unix.Sockaddr) (net.Conn, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := unix.Connect(fd, to); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("connect: %w", err)
	}
	return connOf(fd)
}

// connOf returns the connection of a descriptor. It works for protocols that package net does not know.
func connOf(fd int) (net.Conn, error) {
	return fdConn{os.NewFile(uintptr(fd), "socket")}, nil
}

// An fdConn is a socket of any family as a net.Conn.
type fdConn struct{ *os.File }

func (fdConn) LocalAddr() net.Addr  { return nil }
func (fdConn) RemoteAddr() net.Addr { return nil }

// SetDeadline has no effect on a blocking descriptor: the time limit of the attempt holds.
func (c fdConn) SetDeadline(at time.Time) error { return c.File.SetDeadline(at) }

func (t *trial) through(family, kind, protocol int, to unix.Sockaddr) error {
	conn, err := socket(family, kind, protocol, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	return attempts.Exchange(conn, t.Token())
}

func tcpMapped(t *trial) error {
	to := &unix.SockaddrInet6{Port: t.Port, Addr: netip.MustParseAddr("::ffff:127.0.0.1").As16()}
	return t.through(unix.AF_INET6, unix.SOCK_STREAM, 0, to)
}

func tcpFastOpen(t *trial) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, []byte(t.Token()), unix.MSG_FASTOPEN, t.Loopback()); err != nil {
		return err
	}
	_, err = unix.Read(fd, make([]byte, 100))
	return err
}

func mptcp(t *trial) error {
	return t.through(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, t.Loopback())
}

func udpLite(t *trial) error {
	return t.through(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, t.Loopback())
}

func udpBroadcast(t *trial) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return err
	}
	to := &unix.SockaddrInet4{Port: t.Port, Addr: [4]byte{255, 255, 255, 255}}
	return unix.Sendto(fd, []byte(t.Token()), 0, to)
}

func udpMulticast4(t *trial) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// Without this option the route decides, which is the machine's.
	setErr := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(t.Multicast)})
	to := &unix.SockaddrInet4{Port: t.GroupPort, Addr: [4]byte{224, 0, 0, 251}}
	return errors.Join(setErr, unix.Sendto(fd, []byte(t.Token()), 0, to))
}

func udpMulticast6(t *trial) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet6{Port: t.GroupPort, Addr: netip.MustParseAddr("ff02::1").As16(), ZoneId: uint32(t.Multicast)}
	err = unix.Sendto(fd, []byte(t.Token()), 0, to)
	to.ZoneId = 0
	return errors.Join(err, unix.Sendto(fd, []byte(t.Token()), 0, to))
}

// request sends a GET request with the token as its path.
func (t *trial) request(transport *http.Transport) error {
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+t.Host("127.0.0.1")+"/"+t.Token(), nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return errors.New(resp.Status)
}

func withoutProxy(t *trial) error {
	os.Clearenv()
	return t.request(&http.Transport{Proxy: http.ProxyFromEnvironment})
}

func otherProxy(t *trial) error {
	return t.request(&http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: t.Host("127.0.0.1")})})
}

func noProxy(t *trial) error {
	os.Setenv("NO_PROXY", "*")
	os.Setenv("no_proxy", "*")
	return t.request(&http.Transport{Proxy: http.ProxyFromEnvironment})
}

// stageDaemon starts a process that outlives its parent and connects then.
func stageDaemon(t *trial, args []string) error {
	if len(args) == 0 {
		cmd := self(t.World, "stage", t.world(), t.Name, "daemon", "child")
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		return cmd.Start()
	}
	for parent := unix.Getppid(); parent != 1 && unix.Getppid() == parent; {
		time.Sleep(5 * time.Millisecond)
	}
	return t.dial("tcp4", "127.0.0.1")
}

// stageUnix sends the token to a Unix socket, which a program of the kernel reaches too.
func stageUnix(t *trial, _ []string) error { return t.Send("unix", t.At["stream"], t.Token()) }
