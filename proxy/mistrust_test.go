package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A logbook is a log that a test reads while it is written.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logbook) count() int { return strings.Count(l.String(), "a client does not trust the CA") }

func (l *logbook) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Heads of CONNECT as the clients send them.
func TestKindOf(t *testing.T) {
	for _, c := range []struct{ want, head string }{
		{"curl", "HTTP/1.1\nHost: a.example:443\nUser-Agent: curl/7.88.1\nProxy-Connection: Keep-Alive"},
		{"wget", "HTTP/1.1\nUser-Agent: Wget/1.21.3\nHost: a.example:443"},
		{"git", "HTTP/1.1\nHost: a.example:443\nUser-Agent: git/2.39.5\nProxy-Connection: Keep-Alive"},
		{"requests, or Python's http.client", "HTTP/1.0"}, // requests, urllib
		{"Java", "HTTP/1.1\nUser-Agent: Java/17.0.15\nHost: a.example\nAccept: text/html\nProxy-Connection: keep-alive"},
		{"Node", "HTTP/1.1\nhost: a.example\nconnection: close"}, // fetch, undici
		{"Go", "HTTP/1.1\nHost: a.example:443\nUser-Agent: Go-http-client/1.1"},
		{"aria2", "HTTP/1.1\nUser-Agent: aria2/1.36.0\nHost: a.example:443"},
		{"libcurl, as in PHP", "HTTP/1.1\nHost: a.example:443\nProxy-Connection: Keep-Alive"},
		{"a browser", "HTTP/1.1\nHost: a.example:443\nProxy-Connection: keep-alive\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/156.0.0.0"},
		{"Python", "HTTP/1.1\nHost: a.example\nUser-Agent: Python/3.11 aiohttp/3.9"},
		{"unknown", "HTTP/1.1\nHost: a.example:443"}, // Scrapy, Java's HttpClient, Ruby
		{"unknown", "HTTP/1.1\nHost: a.example:443\nUser-Agent: " + strings.Repeat("x", 5000)},
		{"unknown", "HTTP/1.1\nHost: a.example:443\nUser-Agent: notcurl/1"},
	} {
		head := "CONNECT a.example:443 " + strings.ReplaceAll(c.head, "\n", "\r\n") + "\r\n\r\n"
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
		if err != nil {
			t.Fatal(err)
		}
		if got := kindOf(r); got.name != c.want || got.trust == "" {
			t.Errorf("%.80q: got %q, want %q", c.head, got.name, c.want)
		}
	}
}

// tunnelTo opens a tunnel as a client of this User-Agent does.
func tunnelTo(t *testing.T, w *world, host, agent string) net.Conn {
	t.Helper()
	conn := w.dial()
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %[1]s:443\r\nUser-Agent: %s\r\n\r\n", host, agent)
	// The gate says no more until we do, so nothing is lost in the buffer.
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT: %v %v", resp, err)
	}
	return conn
}

func TestRejectedCertificateIsToldOf(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		var book logbook
		w := newWorld(t, options{gate: func(o *Options) { o.Log = book.log() }})
		for range 5 {
			conn := tls.Client(tunnelTo(t, w, "shop.example", "curl/8.0 evil=\"x\""),
				&tls.Config{ServerName: "shop.example", RootCAs: x509.NewCertPool(), MaxVersion: version})
			if err := conn.Handshake(); err == nil {
				t.Fatal("the handshake succeeds")
			}
		}
		eventually(t, "the log tells of the client", func() bool { return book.count() > 0 })
		for _, want := range []string{"kind=curl", "target=shop.example:443", "client=127.0.0.1", "curl --cacert ca.pem", "ca.pem=http://" + w.addr + "/ca.pem"} {
			if !strings.Contains(book.String(), want) {
				t.Errorf("no %q in %s", want, book.String())
			}
		}
		if strings.Contains(book.String(), "evil") {
			t.Errorf("the User-Agent is logged: %s", book.String())
		}
		// The gate's own port has no CONNECT that would tell who it is.
		conn, err := tls.Dial("tcp", w.addr, &tls.Config{RootCAs: x509.NewCertPool(), MaxVersion: version})
		if err == nil {
			conn.Close()
			t.Fatal("the handshake succeeds")
		}
		eventually(t, "the log tells of the client of the own port", func() bool { return book.count() > 1 })
		if !strings.Contains(book.String(), "wget2 --ca-certificate=ca.pem") {
			t.Errorf("got %s", book.String())
		}
		if n := book.count(); n != 2 {
			t.Errorf("%d lines, want one for each kind of client: %s", n, book.String())
		}
	}
}

// A client that leaves before it has seen a certificate, or that speaks no TLS,
// rejects nothing.
func TestLeavingEarlyIsNoRejection(t *testing.T) {
	var book logbook
	w := newWorld(t, options{gate: func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}})
	firsts := []string{"", "\x16", "\x16\x03\x01\x02\x00\x01\x00", "\x16\x03\x01\x00\x02\x01\x00", "\x15\x03\x01\x00\x02\x02\x30"}
	for _, first := range firsts {
		conn := tunnelTo(t, w, "shop.example", "curl/8")
		io.WriteString(conn, first)
		conn.Close()
	}
	eventually(t, "the gate has seen them leave", func() bool {
		return strings.Count(book.String(), "target=shop.example:443") >= len(firsts)-1 // the last speaks no TLS
	})
	w.gate.errors.mistrust.mu.Lock()
	defer w.gate.errors.mistrust.mu.Unlock()
	if n := len(w.gate.errors.mistrust.suspects); n > 0 || book.count() > 0 {
		t.Errorf("%d suspects, log: %s", n, book.String())
	}
}

// A visitor is a client's connection that ends when the certificate has come.
type visitor struct {
	net.Conn
	from  string
	shown bool
}

func (v *visitor) wasShown() *bool { return &v.shown }
func (v *visitor) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(v.from + ":4711"))
}
func (v *visitor) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:9309"))
}

func TestHangingUpIsToldOfIfNobodyComesBack(t *testing.T) {
	curl, node := kindNamed("curl"), kindNamed("Node")
	for _, c := range []struct {
		name string
		do   func(m *mistrust)
		want int
	}{
		{"hangs up before the certificate", func(m *mistrust) { m.failed(&visitor{from: "192.0.2.7"}, node, "a:443", io.EOF) }, 0},
		{"hangs up at it", func(m *mistrust) { m.failed(&visitor{from: "192.0.2.7", shown: true}, node, "a:443", io.EOF) }, 1},
		{"resets at it", func(m *mistrust) {
			m.failed(&visitor{from: "192.0.2.7", shown: true}, node, "a:443", fmt.Errorf("read: %w", syscall.ECONNRESET))
		}, 1},
		{"something else goes wrong", func(m *mistrust) {
			m.failed(&visitor{from: "192.0.2.7", shown: true}, node, "a:443", errors.New("tls: first record does not look like a TLS handshake"))
		}, 0},
		{"comes back for good", func(m *mistrust) {
			m.failed(&visitor{from: "192.0.2.7", shown: true}, node, "a:443", io.EOF)
			m.trusts(culprit{node, netip.MustParseAddr("192.0.2.7")})
		}, 0},
		{"was here before", func(m *mistrust) {
			m.trusts(culprit{node, netip.MustParseAddr("192.0.2.7")})
			time.Sleep(forgiven / 2)
			m.failed(&visitor{from: "192.0.2.7", shown: true}, node, "a:443", io.EOF)
		}, 0},
		{"the gate ends", func(m *mistrust) {
			m.failed(&visitor{from: "192.0.2.7", shown: true}, node, "a:443", io.EOF)
			m.stop()
		}, 0},
		{"another comes", func(m *mistrust) {
			m.failed(&visitor{from: "192.0.2.7", shown: true}, node, "a:443", io.EOF)
			m.trusts(culprit{curl, netip.MustParseAddr("192.0.2.7")})
			m.trusts(culprit{node, netip.MustParseAddr("192.0.2.8")})
		}, 1},
		{"hangs up many times", func(m *mistrust) {
			for range 1000 {
				m.failed(&visitor{from: "192.0.2.7", shown: true}, node, "a:443", io.EOF)
			}
		}, 1},
		{"goes on for three minutes", func(m *mistrust) {
			for range 180 {
				m.failed(&visitor{from: "192.0.2.7", shown: true}, node, "a:443", io.EOF)
				time.Sleep(time.Second)
			}
		}, 3},
		{"two kinds and two addresses send alerts", func(m *mistrust) {
			for range 10 {
				m.failed(&visitor{from: "192.0.2.7"}, node, "a:443", errors.New("remote error: tls: unknown certificate authority"))
				m.failed(&visitor{from: "192.0.2.7"}, curl, "a:443", errors.New("remote error: tls: bad certificate"))
				m.failed(&visitor{from: "192.0.2.8"}, curl, "a:443", errors.New("local error: tls: bad record MAC"))
			}
		}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var book logbook
				c.do(&mistrust{log: book.log()})
				time.Sleep(hesitation + time.Second)
				synctest.Wait()
				if n := book.count(); n != c.want {
					t.Errorf("%d lines, want %d: %s", n, c.want, book.String())
				}
			})
		})
	}
}

// However many clients there are, what is remembered of them is bounded, and
// forgotten in time.
func TestMistrustIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logbook
		m := &mistrust{log: book.log()}
		flood := func() {
			for i := range 3 * maxMemory {
				from := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
				m.failed(&visitor{from: from.String()}, unknown, "a:443", errors.New("remote error: tls: bad certificate"))
				m.failed(&visitor{from: from.String(), shown: true}, tlsProxy, "a:443", io.EOF)
				m.trusts(culprit{unknown, from})
			}
		}
		flood()
		m.mu.Lock()
		if len(m.said) > maxMemory || len(m.content) > maxMemory || len(m.suspects) > maxMemory {
			t.Errorf("%d, %d, %d culprits in memory", len(m.said), len(m.content), len(m.suspects))
		}
		m.mu.Unlock()
		if n := book.count(); n != maxMemory {
			t.Errorf("%d lines, want %d", n, maxMemory)
		}
		time.Sleep(forgiven)
		before := book.count()
		flood()
		if book.count() == before {
			t.Error("nobody is told of any more")
		}
	})
}

// Node looks at the certificate when the handshake is over: it hangs up without
// a word.
func TestHangingUpAfterTheHandshakeIsSuspect(t *testing.T) {
	w := newWorld(t, options{})
	suspects := func() int {
		w.gate.errors.mistrust.mu.Lock()
		defer w.gate.errors.mistrust.mu.Unlock()
		return len(w.gate.errors.mistrust.suspects)
	}
	for i, agent := range []string{"node", "curl/8"} { // over HTTP/1.1 and HTTP/2
		conn := tls.Client(tunnelTo(t, w, "shop.example", agent), &tls.Config{ServerName: "shop.example", RootCAs: w.roots, NextProtos: []string{"http/1.1", "h2"}[i : i+1]})
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		eventually(t, "the client is suspect", func() bool { return suspects() == i+1 })
	}
	w.get(w.https + "/x") // whose CONNECT is Go's
	who := culprit{kindNamed("Go"), netip.MustParseAddr("127.0.0.1")}
	w.gate.errors.mistrust.mu.Lock()
	defer w.gate.errors.mistrust.mu.Unlock()
	if w.gate.errors.mistrust.content[who].IsZero() {
		t.Error("a request through TLS does not count as trust")
	}
}
