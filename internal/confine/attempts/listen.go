//go:build linux && (amd64 || arm64)

package attempts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// listen starts a target that records the tokens which it receives.
func (o *Outside) listen(network, address string) (net.Listener, error) {
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	o.serve(listener)
	return listener, nil
}

func (o *Outside) serve(listener net.Listener) {
	o.onClose(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go o.converse(conn)
		}
	}()
}

// converse records what a client sends, within bounds, and answers it as an HTTP server would.
func (o *Outside) converse(conn net.Conn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	var received []byte
	part := make([]byte, 4096)
	for len(received) < 1<<16 {
		n, err := conn.Read(part)
		if err != nil {
			return
		}
		received = append(received, part[:n]...)
		o.record(received)
		if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")); err != nil {
			return
		}
	}
}

// receive records datagrams, and answers each that has a sender.
func (o *Outside) receive(conn net.PacketConn) {
	o.onClose(func() { conn.Close() })
	go func() {
		data := make([]byte, 65536)
		for {
			n, from, err := conn.ReadFrom(data)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil && o.record(data[:n]) && from != nil && from.String() != "" {
				_, _ = conn.WriteTo([]byte("ok"), from)
			}
		}
	}()
}

// readFD records what arrives at a descriptor of any kind.
func (o *Outside) readFD(fd int) {
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	done, stop := make(chan struct{}), make(chan struct{})
	o.onClose(func() { close(stop); <-done; unix.Close(fd) })
	go func() {
		defer close(done)
		data := make([]byte, 65536)
		for {
			n, err := unix.Read(fd, data)
			if err == nil {
				o.record(data[:n])
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
}

// listenInternet starts the targets for TCP, UDP and UDP-Lite.
func (o *Outside) listenInternet() error {
	w := &o.World
	// One number that is free for TCP and UDP.
	for range 10 {
		listener, err := net.Listen("tcp", ":0")
		if err != nil {
			return err
		}
		w.Port = listener.Addr().(*net.TCPAddr).Port
		conn, err := net.ListenPacket("udp", ":"+strconv.Itoa(w.Port))
		if err != nil {
			listener.Close()
			w.Port = 0
			continue
		}
		o.serve(listener)
		o.receive(conn)
		o.joinGroups(conn)
		break
	}
	if w.Port == 0 {
		return errors.New("no port is free for TCP and UDP")
	}
	o.addresses()
	lite, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDPLITE)
	if err == nil {
		o.readFD(lite)
		err = unix.Bind(lite, &unix.SockaddrInet4{Port: w.Port})
	}
	o.missing("udplite", wrap("UDP-Lite", err))
	mp, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
	if err == nil {
		unix.Close(mp)
	}
	o.missing("mptcp", wrap("MPTCP", err))
	return o.resolver()
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// joinGroups lets a socket receive multicast on the interface that has a multicast address.
func (o *Outside) joinGroups(conn net.PacketConn) {
	interfaces, _ := net.Interfaces()
	for _, device := range interfaces {
		if device.Flags&net.FlagUp == 0 || device.Flags&net.FlagMulticast == 0 {
			continue
		}
		o.World.Multicast = device.Index
		raw, err := conn.(*net.UDPConn).SyscallConn()
		if err != nil {
			break
		}
		raw.Control(func(fd uintptr) {
			group := &unix.IPv6Mreq{Interface: uint32(device.Index), Multiaddr: netip.MustParseAddr("ff02::1").As16()}
			_ = unix.SetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, group)
			err = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: [4]byte{224, 0, 0, 251}, Ifindex: int32(device.Index)})
		})
		o.missing("multicast", wrap("join a multicast group", err))
		return
	}
	o.missing("multicast", errors.New("no network interface has multicast"))
}

// addresses finds the addresses of this machine.
func (o *Outside) addresses() {
	w := &o.World
	interfaces, _ := net.Interfaces()
	for _, device := range interfaces {
		addresses, _ := device.Addrs()
		for _, a := range addresses {
			prefix, ok := a.(*net.IPNet)
			if !ok || device.Flags&net.FlagUp == 0 {
				continue
			}
			ip, _ := netip.AddrFromSlice(prefix.IP)
			switch ip = ip.Unmap(); {
			case ip.IsLoopback():
			case ip.Is4():
				w.LocalIPv4 = ip.String()
			case ip.IsLinkLocalUnicast():
				w.LinkLocal = ip.String() + "%" + device.Name
			default:
				w.LocalIPv6 = ip.String()
			}
		}
	}
	none := func(what, address string) {
		if address == "" {
			w.Missing[what] = "this machine has no such address"
		}
	}
	none("ipv4", w.LocalIPv4)
	none("ipv6 local", w.LocalIPv6)
	none("link-local", w.LinkLocal)
	if listener, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		w.Missing["ipv6"] = "this machine has no IPv6"
	} else {
		listener.Close()
	}
}

// resolver starts a target on the port of DNS.
func (o *Outside) resolver() error {
	const address = "127.83.53.53:53"
	o.World.Resolver = address
	listener, err := net.Listen("tcp", address)
	if err != nil {
		o.missing("resolver", err)
		return nil
	}
	o.serve(listener)
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		o.missing("resolver", err)
		return nil
	}
	o.receive(conn)
	return nil
}

// listenGate starts the targets on ports that the gate catches, and two origins to which it sends
// requests.
func (o *Outside) listenGate() error {
	w := &o.World
	private, err := o.listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.HTTPPort = private.Addr().(*net.TCPAddr).Port
	port := strconv.Itoa(w.HTTPPort)
	w.Allowed, w.Denied = net.JoinHostPort("127.83.0.8", port), net.JoinHostPort("127.83.0.9", port)
	for address, record := range map[string]bool{w.Allowed: false, w.Denied: true} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: o.origin(record), ReadTimeout: 5 * time.Second}
		o.onClose(func() { server.Close() })
		go server.Serve(listener)
	}
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.TLSPort = listener.Addr().(*net.TCPAddr).Port
	o.serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}}))
	return nil
}

// origin serves a robots.txt that disallows /denied, and records other requests.
func (o *Outside) origin(record bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if record && strings.HasPrefix(path.Clean(r.URL.Path), "/denied/") {
			o.record([]byte(r.URL.Path))
		}
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /denied\n")
		}
	})
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"allowed.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// listenRaw starts the targets of raw sockets and netlink, and sends datagrams for attempts that read.
func (o *Outside) listenRaw() error {
	var errs []error
	for _, s := range []struct{ family, protocol int }{{unix.AF_INET, unix.IPPROTO_ICMP}, {unix.AF_INET6, unix.IPPROTO_ICMPV6}} {
		fd, err := unix.Socket(s.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, s.protocol)
		if err != nil {
			errs = append(errs, wrap("raw socket", err))
			continue
		}
		o.readFD(fd)
	}
	o.missing("raw", errors.Join(errs...))
	o.missing("ping", errors.Join(append(errs, o.allowPing())...))

	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_USERSOCK)
	if err == nil {
		o.readFD(fd)
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: netlinkPort})
	}
	o.missing("netlink", wrap("netlink", err))
	return o.sendBeacon()
}

// allowPing finds out whether the user may make ping sockets, icmp(7).
func (o *Outside) allowPing() error {
	const file = "/proc/sys/net/ipv4/ping_group_range"
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if o.options.Prepare {
		if err := os.WriteFile(file, []byte("0 65535"), 0); err != nil {
			return err
		}
		o.onClose(func() { _ = os.WriteFile(file, before, 0) })
		return nil
	}
	var first, last int
	if _, err := fmt.Sscan(string(before), &first, &last); err != nil || os.Getegid() < first || os.Getegid() > last {
		return errors.New("net.ipv4.ping_group_range has not this group")
	}
	return nil
}

// sendBeacon sends a secret to a port of this machine, again and again.
func (o *Outside) sendBeacon() error {
	conn, err := net.Dial("udp4", "127.0.0.1:9")
	if err != nil {
		o.missing("beacon", err)
		return nil
	}
	stop := make(chan struct{})
	o.onClose(func() { close(stop); conn.Close() })
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			_, _ = conn.Write([]byte(o.secret("beacon")))
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	}()
	return nil
}

// watchDevices records the network device that an attempt moves out.
func (o *Outside) watchDevices() error {
	stop := make(chan struct{})
	o.onClose(func() { close(stop) })
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			if _, err := net.InterfaceByName(vethName); err == nil {
				o.record([]byte(o.World.Token("veth")))
			}
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	}()
	return nil
}
