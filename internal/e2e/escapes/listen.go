//go:build linux && (amd64 || arm64)

package escapes

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

// readFD records what arrives at a descriptor of any kind.
func (o *Outside) readFD(fd int) {
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	done, stop := make(chan struct{}), make(chan struct{})
	o.OnClose(func() { close(stop); <-done; unix.Close(fd) })
	go func() {
		defer close(done)
		data := make([]byte, 65536)
		for {
			n, err := unix.Read(fd, data)
			if err == nil {
				o.Record(data[:n])
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
}

// listenInternet starts the targets for UDP-Lite and multicast.
func (o *Outside) listenInternet() error {
	conn, err := net.ListenPacket("udp", ":0")
	if err != nil {
		return err
	}
	o.GroupPort = conn.LocalAddr().(*net.UDPAddr).Port
	o.Receive(conn)
	o.joinGroups(conn)
	o.findLinkLocal()
	lite, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDPLITE)
	if err == nil {
		o.readFD(lite)
		err = unix.Bind(lite, &unix.SockaddrInet4{Port: o.World.Port})
	}
	o.Missing("udplite", wrap("UDP-Lite", err))
	mp, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
	if err == nil {
		unix.Close(mp)
	}
	o.Missing("mptcp", wrap("MPTCP", err))
	return nil
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
		o.Multicast = device.Index
		raw, err := conn.(*net.UDPConn).SyscallConn()
		if err != nil {
			break
		}
		raw.Control(func(fd uintptr) {
			group := &unix.IPv6Mreq{Interface: uint32(device.Index), Multiaddr: netip.MustParseAddr("ff02::1").As16()}
			_ = unix.SetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, group)
			err = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: [4]byte{224, 0, 0, 251}, Ifindex: int32(device.Index)})
		})
		o.Missing("multicast", wrap("join a multicast group", err))
		return
	}
	o.Missing("multicast", errors.New("no network interface has multicast"))
}

// findLinkLocal finds the link-local address of this machine.
func (o *Outside) findLinkLocal() {
	interfaces, _ := net.Interfaces()
	for _, device := range interfaces {
		addresses, _ := device.Addrs()
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err == nil && prefix.Addr().Is6() && prefix.Addr().IsLinkLocalUnicast() && device.Flags&net.FlagUp != 0 {
				o.World.At["link-local"] = prefix.Addr().String() + "%" + device.Name
			}
		}
	}
	if o.World.At["link-local"] == "" {
		o.Missing("link-local", errors.New("this machine has no such address"))
	}
}

// listenGate starts the targets on ports that the gate catches, and two origins to which it sends
// requests.
func (o *Outside) listenGate() error {
	private, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	o.Serve(private)
	o.HTTPPort = private.Addr().(*net.TCPAddr).Port
	port := strconv.Itoa(o.HTTPPort)
	o.Allowed, o.Denied = net.JoinHostPort("127.83.0.8", port), net.JoinHostPort("127.83.0.9", port)
	for address, record := range map[string]bool{o.Allowed: false, o.Denied: true} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: o.origin(record), ReadTimeout: 5 * time.Second}
		o.OnClose(func() { server.Close() })
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
	o.TLSPort = listener.Addr().(*net.TCPAddr).Port
	o.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}}))
	return nil
}

// origin serves a robots.txt that disallows /denied, and records other requests.
func (o *Outside) origin(record bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if record && strings.HasPrefix(path.Clean(r.URL.Path), "/denied/") {
			o.Record([]byte(r.URL.Path))
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
	o.Missing("raw", errors.Join(errs...))
	o.Missing("ping", errors.Join(append(errs, o.allowPing())...))

	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_USERSOCK)
	if err == nil {
		o.readFD(fd)
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: netlinkPort})
	}
	o.Missing("netlink", wrap("netlink", err))
	return o.sendBeacon()
}

// allowPing lets everyone make ping sockets, icmp(7).
func (o *Outside) allowPing() error {
	const file = "/proc/sys/net/ipv4/ping_group_range"
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte("0 65535"), 0); err != nil {
		return err
	}
	o.OnClose(func() { _ = os.WriteFile(file, before, 0) })
	return nil
}

// sendBeacon sends a secret to a port of this machine, again and again.
func (o *Outside) sendBeacon() error {
	conn, err := net.Dial("udp4", "127.0.0.1:9")
	if err != nil {
		o.Missing("beacon", err)
		return nil
	}
	stop := make(chan struct{})
	o.OnClose(func() { close(stop); conn.Close() })
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			_, _ = conn.Write([]byte(o.Secret))
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
	o.OnClose(func() { close(stop) })
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			if _, err := net.InterfaceByName(vethName); err == nil {
				o.Record([]byte(o.World.Token("veth")))
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
