//go:build linux && (amd64 || arm64)

package attempts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// internet has connections and datagrams to the addresses of this machine and its network.
var internet = []Attempt{
	{Name: "tcp4-loopback", Tries: "connect to 127.0.0.1", try: dial("tcp4", "127.0.0.1")},
	{Name: "tcp4-other-loopback", Tries: "connect to 127.83.0.2", try: dial("tcp4", "127.83.0.2")},
	{Name: "tcp4-zero", Tries: "connect to 0.0.0.0", try: dial("tcp4", "0.0.0.0")},
	{Name: "tcp4-local", Tries: "connect to this machine's IPv4 address", Needs: []string{"ipv4"}, try: func(t *trial) error { return t.dial("tcp4", t.LocalIPv4) }},
	{Name: "tcp6-loopback", Tries: "connect to ::1", Needs: []string{"ipv6"}, try: dial("tcp6", "::1")},
	{Name: "tcp6-zero", Tries: "connect to ::", Needs: []string{"ipv6"}, try: dial("tcp6", "::")},
	{Name: "tcp6-mapped", Tries: "connect to ::ffff:127.0.0.1 with an IPv6 socket", Needs: []string{"ipv6"}, try: tcpMapped},
	{Name: "tcp6-local", Tries: "connect to this machine's IPv6 address", Needs: []string{"ipv6 local"}, try: func(t *trial) error { return t.dial("tcp6", t.LocalIPv6) }},
	{Name: "tcp6-link-local", Tries: "connect to this machine's link-local address", Needs: []string{"link-local"}, try: func(t *trial) error { return t.dial("tcp6", t.LinkLocal) }},
	{Name: "tcp-fast-open", Tries: "send data with the SYN", try: tcpFastOpen},
	{Name: "tcp-daemon", Tries: "connect from a process that has left its session and its parent", try: func(t *trial) error { return t.stage(0, "daemon") }},
	{Name: "mptcp", Tries: "connect with Multipath TCP", Needs: []string{"mptcp"}, try: mptcp},
	{Name: "udp4-loopback", Tries: "send UDP to 127.0.0.1", try: dial("udp4", "127.0.0.1")},
	{Name: "udp4-local", Tries: "send UDP to this machine's IPv4 address", Needs: []string{"ipv4"}, try: func(t *trial) error { return t.dial("udp4", t.LocalIPv4) }},
	{Name: "udp4-broadcast", Tries: "send a UDP broadcast", Needs: []string{"multicast"}, try: udpBroadcast},
	{Name: "udp4-multicast", Tries: "send UDP to the multicast group of mDNS", Needs: []string{"multicast"}, try: udpMulticast4},
	{Name: "udp6-loopback", Tries: "send UDP to ::1", Needs: []string{"ipv6"}, try: dial("udp6", "::1")},
	{Name: "udp6-multicast", Tries: "send UDP to all nodes of the link", Needs: []string{"multicast", "ipv6"}, try: udpMulticast6},
	{Name: "udplite", Tries: "send UDP-Lite to 127.0.0.1", Needs: []string{"udplite"}, try: udpLite},
	{Name: "http-no-variables", Tries: "send an HTTP request with all proxy variables cleared", try: withoutProxy},
	{Name: "http-other-proxy", Tries: "use another proxy than the gate", try: otherProxy},
	{Name: "http-no-proxy", Tries: "exempt every host from the proxy with NO_PROXY", try: noProxy},
	{Name: "https-no-variables", Tries: "speak TLS on a port that the gate does not catch", try: func(t *trial) error { return t.tls(t.at("127.0.0.1"), t.token()+"allowed.example", "allowed.example") }},
}

// names has queries to the resolver outside.
var names = []Attempt{
	{Name: "dns-udp", Tries: "carry data in a name, in a query over UDP", Needs: []string{"resolver"}, try: func(t *trial) error { return t.query("udp", t.Resolver) }},
	{Name: "dns-tcp", Tries: "carry data in a name, in a query over TCP", Needs: []string{"resolver"}, try: func(t *trial) error { return t.query("tcp", t.Resolver) }},
	{Name: "dns-other-port", Tries: "query a resolver on another port", try: func(t *trial) error { return t.query("udp", t.at("127.0.0.1")) }},
	{Name: "dns-no-dns", Tries: "send the resolver's port data that are no query", Needs: []string{"resolver"}, try: func(t *trial) error { return t.send("tcp", t.Resolver, t.token()) }},
}

// at returns an address with the port of the targets.
func (t *trial) at(host string) string { return net.JoinHostPort(host, strconv.Itoa(t.Port)) }

func dial(network, host string) func(*trial) error {
	return func(t *trial) error { return t.dial(network, host) }
}

func (t *trial) dial(network, host string) error { return t.send(network, t.at(host), t.token()) }

// send connects, sends text and waits for the answer.
func (t *trial) send(network, address, text string) error {
	dialer := net.Dialer{Timeout: time.Second, ControlContext: nil}
	dialer.SetMultipathTCP(false)
	conn, err := dialer.Dial(network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	return exchange(conn, text)
}

// exchange sends text and reads the answer, so that text has arrived when it returns. An answer to a
// datagram may be missing.
func exchange(conn net.Conn, text string) error {
	conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte(text)); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if err != nil {
		return fmt.Errorf("sent; no answer: %w", err)
	}
	line, _, _ := strings.Cut(string(answer[:n]), "\r\n")
	return fmt.Errorf("answer %.60q", line)
}

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

func (t *trial) loopback4() *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: t.Port, Addr: [4]byte{127, 0, 0, 1}}
}

func (t *trial) through(family, kind, protocol int, to unix.Sockaddr) error {
	conn, err := socket(family, kind, protocol, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	return exchange(conn, t.token())
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
	if err := unix.Sendto(fd, []byte(t.token()), unix.MSG_FASTOPEN, t.loopback4()); err != nil {
		return err
	}
	_, err = unix.Read(fd, make([]byte, 100))
	return err
}

func mptcp(t *trial) error {
	return t.through(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, t.loopback4())
}

func udpLite(t *trial) error {
	return t.through(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, t.loopback4())
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
	return unix.Sendto(fd, []byte(t.token()), 0, to)
}

func udpMulticast4(t *trial) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// Without this option the route decides, which is the machine's.
	setErr := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(t.Multicast)})
	to := &unix.SockaddrInet4{Port: t.Port, Addr: [4]byte{224, 0, 0, 251}}
	return errors.Join(setErr, unix.Sendto(fd, []byte(t.token()), 0, to))
}

func udpMulticast6(t *trial) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet6{Port: t.Port, Addr: netip.MustParseAddr("ff02::1").As16(), ZoneId: uint32(t.Multicast)}
	err = unix.Sendto(fd, []byte(t.token()), 0, to)
	to.ZoneId = 0
	return errors.Join(err, unix.Sendto(fd, []byte(t.token()), 0, to))
}

// request sends a GET request with the token as its path.
func (t *trial) request(transport *http.Transport) error {
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+t.at("127.0.0.1")+"/"+t.token(), nil)
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
	return t.request(&http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: t.at("127.0.0.1")})})
}

func noProxy(t *trial) error {
	os.Setenv("NO_PROXY", "*")
	os.Setenv("no_proxy", "*")
	return t.request(&http.Transport{Proxy: http.ProxyFromEnvironment})
}

// query sends a DNS query for a name that holds the token.
func (t *trial) query(network, server string) error {
	message := dnsQuery(strings.TrimSuffix(t.token(), "."), "outside.example")
	if network == "tcp" {
		message = append([]byte{byte(len(message) >> 8), byte(len(message))}, message...)
	}
	return t.send(network, server, string(message))
}

// dnsQuery returns a query for the IPv4 address of a host in a domain (RFC 1035, section 4).
func dnsQuery(host, domain string) []byte {
	q := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(host+"."+domain, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	return append(q, 0, 0, 1, 0, 1)
}

// stageDaemon starts a process that outlives its parent and connects then.
func stageDaemon(t *trial, args []string) error {
	if len(args) == 0 {
		cmd := t.self(context.Background(), "stage", t.file(), t.name, "daemon", "child")
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		return cmd.Start()
	}
	for parent := unix.Getppid(); parent != 1 && unix.Getppid() == parent; {
		time.Sleep(5 * time.Millisecond)
	}
	return t.dial("tcp4", "127.0.0.1")
}

// stageUnix sends the token to a Unix socket, which a program of the kernel reaches too.
func stageUnix(t *trial, _ []string) error { return t.send("unix", t.Unix["stream"], t.token()) }
