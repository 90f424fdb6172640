package proxy_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/proxytest"
)

// socksTo returns a request to connect to a name or to an address of IPv4.
func socksTo(hostname, port string) string {
	n, _ := strconv.Atoi(port)
	to := "\x03" + string(rune(len(hostname))) + hostname
	if a, err := netip.ParseAddr(hostname); err == nil {
		to = "\x01" + string(a.AsSlice())
	}
	return "\x05\x01\x00" + to + string([]byte{byte(n >> 8), byte(n)})
}

// received reads as many bytes as are wanted, and compares them.
func received(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	n, _ := io.ReadFull(conn, got)
	if string(got[:n]) != want {
		t.Fatalf("received %q, want %q", got[:n], want)
	}
}

// openSocks connects to a host through the gate.
func openSocks(t *testing.T, g *proxytest.Gate, hostname, port string) net.Conn {
	t.Helper()
	conn := dialed(t, g.Addr)
	io.WriteString(conn, "\x05\x01\x00"+socksTo(hostname, port))
	received(t, conn, "\x05\x00"+socksReply(0))
	return conn
}

func socksReply(reply byte) string { return string(client.SocksReply(reply)) }

// What the gate answers to greetings, logins and requests, and what it counts.
func TestSocksAnswers(t *testing.T) {
	login := func(user, password string) string {
		return "\x01" + string(rune(len(user))) + user + string(rune(len(password))) + password
	}
	const none, loginOnly, both = "\x05\x01\x00", "\x05\x01\x02", "\x05\x02\x00\x02"
	request := socksTo("loop.example.com", "80")
	yes := socksReply(0)
	for _, c := range []struct {
		name, gate, send, want string
		reason                 client.ConnRefusal
		kind                   record.Refusal // of the record; "": there is none
	}{
		{name: "no login", send: none + request, want: "\x05\x00" + yes},
		{name: "methods unknown", send: "\x05\x02\x01\x80", want: "\x05\xff", reason: client.SocksMethod},
		{name: "no methods", send: "\x05\x00", want: "\x05\xff", reason: client.SocksMethod},
		{name: "both methods, and no login is configured", send: both + request, want: "\x05\x00" + yes},
		{name: "a login only, and none is configured", send: loginOnly + login("a", "b") + request, want: "\x05\x02\x01\x00" + yes},
		{name: "the right login", gate: "logins", send: both + login("team", proxytest.NewsPassword) + request, want: "\x05\x02\x01\x00" + yes},
		{name: "the right login, only that is offered", gate: "logins", send: loginOnly + login("team", proxytest.NewsPassword) + request, want: "\x05\x02\x01\x00" + yes},
		{name: "a wrong password", gate: "logins", send: both + login("team", "wrong"), want: "\x05\x02\x01\x01", reason: client.SocksLogin},
		{name: "a wrong user", gate: "logins", send: both + login("other", proxytest.NewsPassword), want: "\x05\x02\x01\x01", reason: client.SocksLogin},
		{name: "an empty login", gate: "logins", send: loginOnly + login("", ""), want: "\x05\x02\x01\x01", reason: client.SocksLogin},
		{name: "no login, but one is needed", gate: "logins", send: none, want: "\x05\xff", reason: client.SocksLogin},
		{name: "an unknown client", gate: "unknown", send: none, want: "\x05\xff", reason: client.SocksLogin},
		{name: "an unknown client with a login", gate: "unknown", send: loginOnly + login("a", "b"), want: "\x05\x02\x01\x01", reason: client.SocksLogin},
		{name: "a client known by its address", gate: "known", send: none + request, want: "\x05\x00" + yes},
		{name: "a client that may be known by its User-Agent", gate: "agent", send: none + request, want: "\x05\x00" + yes},
		{name: "a wrong login counts as none", gate: "optional", send: both + login("team", "wrong") + request, want: "\x05\x02\x01\x00" + yes},
		{name: "a login of another version", send: loginOnly + "\x05\x01a\x01b", want: "\x05\x02\x01\x01", reason: client.SocksMalformed},
		{name: "BIND", send: none + "\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", want: "\x05\x00" + socksReply(7), reason: client.SocksCommand},
		{name: "UDP ASSOCIATE", send: none + "\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50", want: "\x05\x00" + socksReply(7), reason: client.SocksCommand},
		{name: "another type of address", send: none + "\x05\x01\x00\x05\x7f\x00\x00\x01\x00\x50", want: "\x05\x00" + socksReply(8), reason: client.SocksAddressType},
		{name: "a request of another version", send: none + "\x04\x01\x00\x01\x7f\x00\x00\x01\x00\x50", want: "\x05\x00" + socksReply(1), reason: client.SocksMalformed},
		{name: "a prohibited address", send: none + socksTo("169.254.169.254", "80"), want: "\x05\x00" + socksReply(2), reason: client.SocksDenied, kind: record.ByGuard},
		{name: "a prohibited address as a name", send: none + "\x05\x01\x00\x03\x0f169.254.169.254\x00\x50", want: "\x05\x00" + socksReply(2), reason: client.SocksDenied, kind: record.ByGuard},
		{name: "a prohibited address of IPv6", send: none + "\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50", want: "\x05\x00" + socksReply(2), reason: client.SocksDenied, kind: record.ByGuard},
		{name: "a prohibited address of IPv4 in IPv6", send: none + "\x05\x01\x00\x04" + strings.Repeat("\x00", 10) +
			"\xff\xff\x0a\x00\x00\x01\x00\x50", want: "\x05\x00" + socksReply(2), reason: client.SocksDenied, kind: record.ByGuard},
		{name: "a permitted address", send: none + socksTo("127.0.0.1", "80"), want: "\x05\x00" + yes},
		{name: "a forbidden host", gate: "deny host", send: none + request, want: "\x05\x00" + socksReply(2), reason: client.SocksDenied, kind: record.ByGuard},
		{name: "a forbidden port", gate: "ports", send: none + request, want: "\x05\x00" + socksReply(2), reason: client.SocksDenied, kind: record.ByGuard},
		{name: "a name that leads to a prohibited address", send: none + socksTo("metadata.example.com", "80"), want: "\x05\x00" + yes},
		{name: "denied by an override", gate: "deny override", send: none + request, want: "\x05\x00" + socksReply(2), reason: client.SocksDenied, kind: record.Refusal(policy.ByOverride)},
		{name: "another host than an override denies", gate: "deny override", send: none + socksTo("second.example.com", "80"), want: "\x05\x00" + yes},
		{name: "denied by an override, reported only", gate: "deny override, report", send: none + request, want: "\x05\x00" + yes},
		{name: "denied for some paths", gate: "deny paths", send: none + request, want: "\x05\x00" + yes},
		{name: "denied for another crawler", gate: "deny other", send: none + request, want: "\x05\x00" + yes},
		{name: "an address whose name may be allowed", gate: "allowlist", send: none + socksTo("127.0.0.1", "80"), want: "\x05\x00" + yes},
		{name: "a name that is not allowed", gate: "allowlist", send: none + request, want: "\x05\x00" + socksReply(2), reason: client.SocksDenied, kind: record.Refusal(policy.ByOverride)},
		{name: "the gate's own page", send: none + socksTo("robotsgate.invalid", "80"), want: "\x05\x00" + yes},
		{name: "no host name", send: none + socksTo("a b", "80"), want: "\x05\x00" + socksReply(4), reason: client.SocksUnreachable},
		{name: "a name with a port", send: none + socksTo("example.com:443", "80"), want: "\x05\x00" + socksReply(4), reason: client.SocksUnreachable},
		{name: "an empty name", send: none + socksTo("", "80"), want: "\x05\x00" + socksReply(4), reason: client.SocksUnreachable},
		{name: "port 0", send: none + socksTo("loop.example.com", "0"), want: "\x05\x00" + socksReply(4), reason: client.SocksUnreachable},
		{name: "SOCKS4", send: "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", want: "", reason: client.SocksVersion},
		{name: "a greeting that ends", gate: "impatient", send: "\x05\x03\x00", want: "", reason: client.Incomplete},
		{name: "a login that ends", gate: "impatient", send: loginOnly + "\x01\x04te", want: "\x05\x02", reason: client.Incomplete},
		{name: "a request that ends", gate: "impatient", send: none + request[:9], want: "\x05\x00", reason: client.Incomplete},
	} {
		for _, form := range []string{"at once", "byte by byte"} {
			t.Run(c.name+", "+form, func(t *testing.T) {
				t.Parallel()
				g := proxytest.Start(t, gateOptions(t, c.gate))
				conn := dialed(t, g.Addr)
				if form == "at once" {
					io.WriteString(conn, c.send)
				} else {
					pieces{conn}.Write([]byte(c.send))
				}
				received(t, conn, c.want)
				if c.reason == "" {
					conn.Close()
					return
				}
				if rest, _ := io.ReadAll(conn); len(rest) > 0 {
					t.Errorf("more is received: %q", rest)
				}
				proxytest.Eventually(t, "it is counted", func() bool { return g.Proxy.SocksConnections().Refused[c.reason] == 1 })
				if c.kind != "" {
					if x := g.Next(t); x.Kind() != c.kind || !x.Socks || !x.Tunnel || x.Status != 403 || !strings.HasPrefix(x.Address(), "http://") {
						t.Errorf("record: %+v", x)
					}
				} else if len(g.Done) > 0 {
					t.Errorf("record: %+v", g.Next(t))
				}
				if g.Count() > 0 {
					t.Error("a request has left")
				}
				conn.Close()
				proxytest.Eventually(t, "no connection is counted as open", func() bool { return g.Proxy.Connections().Open == 0 })
			})
		}
	}
}

// What comes through a SOCKS connection is decided about like any request. Host, the server name and the name in the
// request must agree.
func TestSocksRequests(t *testing.T) {
	for _, c := range []struct {
		name, to, sni, send, want string // sni "-": in clear, "": none
		kind                      record.Refusal
		arrived                   string
	}{
		{name: "in clear", to: "loop.example.com", sni: "-", send: get("/a"), want: "200", arrived: "GET /a"},
		{name: "in clear, denied", to: "loop.example.com", sni: "-", send: get("/private/a"), want: "403", kind: "rule"},
		{name: "in clear, the port in Host", to: "loop.example.com", sni: "-", send: to("loop.example.com:PORT", "/a"), want: "200", arrived: "GET /a"},
		{name: "in clear, another port in Host", to: "loop.example.com", sni: "-", send: to("loop.example.com:1", "/a"), want: "421", kind: record.IsMalformed},
		{name: "in clear, another Host", to: "loop.example.com", sni: "-", send: to("second.example.com", "/a"), want: "421", kind: record.IsMalformed},
		{name: "in clear, HTTP/1.0 without Host", to: "loop.example.com", sni: "-", send: "GET /a HTTP/1.0\r\n\r\n", want: "200", arrived: "GET /a"},
		{name: "in clear, a whole URL", to: "loop.example.com", sni: "-", send: "GET http://loop.example.com:PORT/a HTTP/1.1\r\nHost: loop.example.com\r\n\r\n", want: "400", kind: record.IsMalformed},
		{name: "in clear, CONNECT", to: "loop.example.com", sni: "-", send: "CONNECT loop.example.com:443 HTTP/1.1\r\nHost: loop.example.com:443\r\n\r\n", want: "405", kind: record.IsMalformed},
		{name: "in clear, an address", to: "127.0.0.1", sni: "-", send: to("127.0.0.1", "/a"), want: "200", arrived: "GET /a"},
		{name: "in clear, an address and a name in Host", to: "127.0.0.1", sni: "-", send: get("/a"), want: "200", arrived: "GET /a"},
		{name: "in clear, an address and a name that is prohibited", to: "127.0.0.1", sni: "-", send: to("metadata.example.com", "/a"), want: "403", kind: record.ByGuard},
		{name: "in clear, a name that is prohibited", to: "metadata.example.com", sni: "-", send: to("metadata.example.com", "/a"), want: "403", kind: record.ByGuard},
		{name: "in clear, another spelling", to: "LOOP.example.com", sni: "-", send: to("loop.EXAMPLE.com", "/a"), want: "200", arrived: "GET /a"},
		{name: "TLS", to: "loop.example.com", sni: "loop.example.com", send: get("/a"), want: "200", arrived: "GET /a"},
		{name: "TLS, denied", to: "loop.example.com", sni: "loop.example.com", send: get("/private/a"), want: "403", kind: "rule"},
		{name: "TLS, another server name", to: "loop.example.com", sni: "second.example.com", send: to("second.example.com", "/a"), want: "421", kind: record.IsMalformed},
		{name: "TLS, another Host", to: "loop.example.com", sni: "loop.example.com", send: to("second.example.com", "/a"), want: "421", kind: record.IsMalformed},
		{name: "TLS, an address and a server name", to: "127.0.0.1", sni: "loop.example.com", send: get("/a"), want: "200", arrived: "GET /a"},
		{name: "TLS, an address and another Host", to: "127.0.0.1", sni: "loop.example.com", send: to("second.example.com", "/a"), want: "421", kind: record.IsMalformed},
		{name: "TLS, an address without a server name", to: "127.0.0.1", send: to("127.0.0.1", "/a"), want: "200", arrived: "GET /a"},
		{name: "TLS, an address without a server name, a name in Host", to: "127.0.0.1", send: get("/a"), want: "421", kind: record.IsMalformed},
		{name: "TLS, a name without a server name", to: "loop.example.com", send: get("/a"), want: "200", arrived: "GET /a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := proxytest.Start(t, proxytest.Options{})
			port := portOf(g.HTTPS)
			if c.sni == "-" {
				port = portOf(g.HTTP)
			}
			conn := openSocks(t, g, c.to, port)
			if c.sni != "-" {
				config := &tls.Config{RootCAs: g.Roots, ServerName: c.sni}
				if c.sni == "" {
					config.ServerName = c.to
					if _, err := netip.ParseAddr(c.to); err != nil { // crypto/tls would send it
						config.ServerName, config.InsecureSkipVerify = "", true
					}
				}
				conn = tls.Client(conn, config)
			}
			request := strings.ReplaceAll(c.send, "PORT", port)
			io.WriteString(conn, request)
			if answer := proxytest.ReadAnswer(t, conn, request); proxytest.StatusOf(answer) != c.want {
				t.Errorf("got %s, want %s", answer, c.want)
			}
			x := g.Next(t)
			if !x.Socks || !x.Tunnel || x.Kind() != c.kind || fmt.Sprint(x.Status) != c.want {
				t.Errorf("record: %+v", x)
			}
			if c.arrived != "" {
				proxytest.WantArrived(t, g, c.arrived)
			} else {
				proxytest.WantArrived(t, g)
			}
			if n := g.Proxy.SocksConnections(); n.Served != 1 {
				t.Errorf("got %+v", n)
			}
			if n := g.Proxy.Connections(); (n.Open != 1 || n.Tunnels != 1) && !strings.Contains(request, "HTTP/1.0") { // the gate closes that
				t.Errorf("got %+v", n)
			}
			conn.Close()
			proxytest.Eventually(t, "the connection is no longer counted", func() bool { n := g.Proxy.Connections(); return n.Open == 0 && n.Tunnels == 0 })
		})
	}
}

// A login stands for the whole connection.
func TestSocksLogin(t *testing.T) {
	for _, password := range []string{proxytest.NewsPassword, "wrong"} {
		g := proxytest.Start(t, gateOptions(t, "optional"))
		conn := dialed(t, g.Addr)
		io.WriteString(conn, "\x05\x02\x00\x02\x01\x04team"+string(rune(len(password)))+password+socksTo("loop.example.com", portOf(g.HTTP)))
		received(t, conn, "\x05\x02\x01\x00"+socksReply(0))
		want := map[bool]string{true: "known", false: "default"}[password == proxytest.NewsPassword]
		for range 2 {
			io.WriteString(conn, get("/a"))
			if x := g.Next(t); x.Crawler != want || x.Status != 200 {
				t.Errorf("record: %+v", x)
			}
		}
	}
}

// What follows the request without waiting is read. What is neither TLS nor HTTP/1 is refused.
func TestSocksBeginnings(t *testing.T) {
	for _, c := range []struct {
		name, send string
		reason     client.ConnRefusal
	}{
		{"a request of HTTP at once", get("/a"), ""},
		{"HTTP/2 in clear", http2Preface, client.ClearHTTP2},
		{"SSH", "SSH-2.0-OpenSSH_9.9\r\n", client.NotHTTP},
		{"SOCKS in SOCKS", "\x05\x01\x00", client.NotHTTP},
		{"no ClientHello", "\x16\x03\x01\x00\x05hello", client.BadHello},
		{"half a request line", "GET /a", client.Incomplete},
		{"half a record", "\x16\x03", client.Incomplete},
		{"an address as server name", "HELLO", client.BadName},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			gate := ""
			if c.reason == client.Incomplete {
				gate = "impatient"
			}
			g := proxytest.Start(t, gateOptions(t, gate))
			conn := dialed(t, g.Addr)
			target := "loop.example.com"
			if c.reason == client.BadName {
				target, c.send = "127.0.0.1", helloFor(t, "192.0.2.201")
			}
			io.WriteString(conn, "\x05\x01\x00"+socksTo(target, portOf(g.HTTP))+c.send)
			received(t, conn, "\x05\x00"+socksReply(0))
			if c.reason == "" {
				if answer := proxytest.ReadAnswer(t, conn, c.send); proxytest.StatusOf(answer) != "200" {
					t.Errorf("got %s", answer)
				}
				return
			}
			rest, _ := io.ReadAll(conn)
			if alert := []byte{0x15, 3, 3, 0, 2, 2, client.AlertUnrecognizedName}; len(rest) > 0 && (c.reason != client.BadName || !bytes.Equal(rest, alert)) {
				t.Errorf("answered %q", rest)
			}
			if n := g.Proxy.SocksConnections(); n.Refused[c.reason] != 1 || n.Served > 0 {
				t.Errorf("got %+v", n)
			}
		})
	}
}

// A tunnel to a passthrough host is decided once, and only if it carries TLS.
func TestSocksPassthrough(t *testing.T) {
	for _, c := range []struct {
		name, robots, to, sni string
		want                  string
	}{
		{"allowed", "# nothing\n", "loop.example.com", "loop.example.com", "200"},
		{"an address", "# nothing\n", "127.0.0.1", "loop.example.com", "200"},
		{"denied", "User-agent: *\nDisallow: /\n", "loop.example.com", "loop.example.com", "access denied"},
		{"another server name", "# nothing\n", "loop.example.com", "second.example.com", "unrecognized name"},
		{"in clear", proxytest.ExampleRobots, "loop.example.com", "-", "403"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := proxytest.Start(t, proxytest.Options{Robots: c.robots, Proxy: proxytest.PassThrough})
			request := "GET /private/a HTTP/1.1\r\nHost: loop.example.com\r\nConnection: close\r\n\r\n"
			var conn net.Conn
			if c.sni == "-" {
				conn = openSocks(t, g, c.to, portOf(g.HTTP))
			} else {
				conn = tls.Client(openSocks(t, g, c.to, portOf(g.HTTPS)), &tls.Config{RootCAs: g.OriginRoots, ServerName: c.sni, InsecureSkipVerify: true})
			}
			if _, err := io.WriteString(conn, request); err != nil {
				if !strings.HasSuffix(err.Error(), c.want) {
					t.Errorf("the handshake: %v, want %s", err, c.want)
				}
				return
			}
			if answer := proxytest.ReadAnswer(t, conn, request); proxytest.StatusOf(answer) != c.want {
				t.Errorf("got %s, want %s", answer, c.want)
			}
			conn.Close()
			if x := g.Next(t); !x.Socks || (x.Method == "CONNECT") != (c.sni != "-") {
				t.Errorf("record: %+v", x)
			}
		})
	}
}
