package origin

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"robotsgate/policy/glob"
)

func TestGuardAddresses(t *testing.T) {
	open := newGuard(Config{})
	private := newGuard(Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("fe80::/10")}})
	for _, c := range []struct {
		addr        string
		open, allow bool // reachable by default; with allow_private
		what        string
	}{
		{"1.1.1.1", true, true, "public"},
		{"93.184.215.14", true, true, "public"},
		{"2606:4700::1111", true, true, "public"},
		{"2a00:1450:4001::200e", true, true, "public"},
		{"0.0.0.0", false, false, "this host"},
		{"0.1.2.3", false, false, "this network"},
		{"10.0.0.1", false, true, "RFC 1918"},
		{"10.255.255.255", false, true, "RFC 1918"},
		{"9.255.255.255", true, true, "before 10/8"},
		{"11.0.0.0", true, true, "after 10/8"},
		{"100.64.0.1", false, false, "carrier-grade NAT"},
		{"100.127.255.255", false, false, "carrier-grade NAT"},
		{"100.128.0.0", true, true, "after carrier-grade NAT"},
		{"127.0.0.1", false, true, "loopback"},
		{"127.255.255.254", false, true, "loopback"},
		{"169.254.169.254", false, false, "cloud metadata"},
		{"169.254.0.1", false, false, "link-local"},
		{"172.16.0.1", false, false, "RFC 1918"},
		{"172.31.255.255", false, false, "RFC 1918"},
		{"172.32.0.0", true, true, "after 172.16/12"},
		{"192.0.0.8", false, false, "IETF"},
		{"192.0.2.1", false, false, "documentation"},
		{"192.88.99.1", false, false, "6to4 relays"},
		{"192.168.1.1", false, false, "RFC 1918"},
		{"198.18.0.1", false, false, "benchmarks"},
		{"198.19.255.255", false, false, "benchmarks"},
		{"198.51.100.1", false, false, "documentation"},
		{"203.0.113.1", false, false, "documentation"},
		{"224.0.0.1", false, false, "multicast"},
		{"239.255.255.255", false, false, "multicast"},
		{"240.0.0.1", false, false, "reserved"},
		{"255.255.255.255", false, false, "broadcast"},
		{"::", false, false, "unspecified"},
		{"::1", false, true, "loopback"},
		{"::127.0.0.1", false, false, "IPv4-compatible"},
		{"::ffff:127.0.0.1", false, true, "IPv4-mapped"},
		{"::ffff:10.0.0.1", false, true, "IPv4-mapped"},
		{"::ffff:169.254.169.254", false, false, "IPv4-mapped"},
		{"::ffff:1.1.1.1", true, true, "IPv4-mapped, public"},
		{"::ffff:0:127.0.0.1", false, false, "IPv4-translated"},
		{"64:ff9b::10.0.0.1", false, false, "NAT64 of a private address"},
		{"64:ff9b::169.254.169.254", false, false, "NAT64 of cloud metadata"},
		{"64:ff9b:1::1", false, false, "local NAT64"},
		{"100::1", false, false, "discard"},
		{"2001::1", false, false, "Teredo"},
		{"2001:0:7f00:1::", false, false, "Teredo of loopback"},
		{"2001:2::1", false, false, "benchmarks"},
		{"2001:10::1", false, false, "ORCHID"},
		{"2001:20::1", false, false, "ORCHIDv2"},
		{"2001:db8::1", false, false, "documentation"},
		{"2002:7f00:1::", false, false, "6to4 of loopback"},
		{"2002:a00:1::", false, false, "6to4 of 10.0.0.1"},
		{"3fff::1", false, false, "documentation"},
		{"5f00::1", false, false, "segment routing"},
		{"fc00::1", false, false, "unique local"},
		{"fd00::1", false, true, "unique local"},
		{"fe80::1", false, true, "link-local"},
		{"fe80::1%eth0", false, false, "with a zone"},
		{"::1%lo", false, false, "with a zone"},
		{"fec0::1", false, false, "site-local"},
		{"ff02::1", false, false, "multicast"},
		{"4000::1", false, false, "not yet assigned"},
	} {
		addr := netip.MustParseAddr(c.addr)
		for name, g := range map[string]*guard{"default": open, "allow_private": private} {
			want := c.open
			if g == private {
				want = c.allow
			}
			// The name, as a client gives it, and the address, as it is dialled.
			byName := g.name(c.addr, "80")
			dialled := g.control(t.Context(), "tcp", netip.AddrPortFrom(addr, 80).String(), nil)
			for how, err := range map[string]error{"named": byName, "dialled": dialled} {
				if (err == nil) != want {
					t.Errorf("%s (%s), %s, %s: %v, want reachable: %v", c.addr, c.what, name, how, err, want)
				}
				if err != nil && !errors.Is(err, ErrProhibited) {
					t.Errorf("%s: %v is not ErrProhibited", c.addr, err)
				}
			}
		}
	}
	if err := open.control(t.Context(), "tcp", "not an address", nil); !errors.Is(err, ErrProhibited) {
		t.Errorf("what can't be read must be prohibited: %v", err)
	}
}

func TestGuardHostsAndPorts(t *testing.T) {
	var deny []glob.Glob
	for _, pattern := range []string{"bad.example", "*.worse.example", "1.1.1.1"} {
		g, err := glob.Host(pattern)
		if err != nil {
			t.Fatal(err)
		}
		deny = append(deny, g)
	}
	g := newGuard(Config{DenyHosts: deny, Ports: []int{80, 443}})
	for _, c := range []struct {
		host, port string
		want       bool
	}{
		{"good.example", "80", true},
		{"good.example", "443", true},
		{"good.example", "8080", false},
		{"good.example", "22", false},
		{"good.example", "", false},
		{"good.example", "65536", false},
		{"good.example", "http", false},
		{"bad.example", "80", false},
		{"BAD.example", "80", false},
		{"bad.example.", "80", false},
		{"sub.bad.example", "80", true},
		{"worse.example", "80", true},
		{"a.b.worse.example", "80", false},
		{"1.1.1.1", "80", false},
		{"1.1.1.2", "80", true},
		{"127.0.0.1", "80", false},
	} {
		if err := g.name(c.host, c.port); (err == nil) != c.want {
			t.Errorf("%s port %s: %v, want allowed: %v", c.host, c.port, err, c.want)
		}
	}
}

// The gate must not be made to ask itself, nor its admin listener, whatever
// allow_private permits.
func TestGuardOwnAddresses(t *testing.T) {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var here []string // addresses of this machine that are not loopback
	for _, i := range interfaces {
		if p, err := netip.ParsePrefix(i.String()); err == nil && !p.Addr().IsLoopback() && p.Addr().Zone() == "" {
			here = append(here, p.Addr().String())
		}
	}
	for _, c := range []struct {
		own         string
		prohibited  []string
		permitted   []string
		alsoMachine bool
	}{
		{"127.0.0.1:9309", []string{"127.0.0.1", "::ffff:127.0.0.1"}, []string{"127.0.0.2", "::1", "10.0.0.1"}, false},
		{"[::1]:9309", []string{"::1"}, []string{"127.0.0.1"}, false},
		{"[::ffff:127.0.0.1]:9309", []string{"127.0.0.1"}, []string{"::1"}, false},
		{"0.0.0.0:9309", []string{"127.0.0.1", "127.0.0.53", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"}, []string{"10.99.99.99"}, true},
		{"[::]:9309", []string{"127.0.0.1", "127.0.0.53", "::1", "0.0.0.0", "::"}, []string{"10.99.99.99"}, true},
	} {
		own := netip.MustParseAddrPort(c.own)
		admin := netip.AddrPortFrom(own.Addr(), 9310)
		g := newGuard(Config{AllowPrivate: all, Own: func() []netip.AddrPort { return []netip.AddrPort{own, admin} }})
		if c.alsoMachine {
			c.prohibited = append(c.prohibited, here...)
		}
		for _, addr := range c.prohibited {
			for _, port := range []uint16{9309, 9310} {
				if err := g.address(netip.AddrPortFrom(netip.MustParseAddr(addr), port)); !errors.Is(err, ErrProhibited) {
					t.Errorf("listening on %s: %s port %d is reachable", c.own, addr, port)
				}
			}
			if to := netip.MustParseAddr(addr); to.Unmap().IsUnspecified() {
				continue // refused on every port
			} else if err := g.address(netip.AddrPortFrom(to, 9311)); err != nil {
				t.Errorf("listening on %s: %s on another port: %v", c.own, addr, err)
			}
		}
		for _, addr := range c.permitted {
			if err := g.address(netip.AddrPortFrom(netip.MustParseAddr(addr), 9309)); err != nil {
				t.Errorf("listening on %s: %s: %v", c.own, addr, err)
			}
		}
	}
}

// mayBeAddress is true for every address.
func TestMayBeAddress(t *testing.T) {
	hosts := []string{"", "0", "::", "::1", "1.2.3.4", "1.2.3.4.", "1.2.3", "fe80::1%eth0", "::ffff:1.2.3.4", "2001:db8::abcd", "a", "example.test", "example.test."}
	const letters = "0129afgz.:%-["
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		b := make([]byte, r.IntN(12))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		hosts = append(hosts, string(b))
	}
	for range 1000 {
		var v4 [4]byte
		var v6 [16]byte
		for i := range v6 {
			v6[i] = byte(r.Uint32())
			v4[i%4] = v6[i]
		}
		hosts = append(hosts, netip.AddrFrom4(v4).String(), netip.AddrFrom16(v6).String(), netip.AddrFrom16(v6).WithZone("z").String(), netip.AddrFrom16(netip.AddrFrom4(v4).As16()).String())
	}
	for _, host := range hosts {
		if _, err := netip.ParseAddr(host); err == nil && !mayBeAddress(host) {
			t.Errorf("%q is an address", host)
		}
	}
	for _, host := range []string{"", "example.test", "a1.test"} {
		if mayBeAddress(host) {
			t.Errorf("%q may be an address", host)
		}
	}
}

// The parent proxy is that of the configuration. The variables of the environment may lead to the gate itself.
func TestNoProxyOfEnvironment(t *testing.T) {
	for _, c := range []Config{{}, {MaxConnsPerHost: 1}} {
		u := newTransport(t, c, &Conns{})
		if u.netHTTP.http2.Proxy != nil || u.netHTTP.http1.Proxy != nil {
			t.Errorf("%+v: net/http looks for a proxy", c)
		}
	}
}
