package proxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/glob"
)

func unseen(o *Options) { o.Settings.Passthrough = func(string) bool { return true } }

// connectTo sends CONNECT and returns the connection with the answer's head.
func (w *world) connectTo(t *testing.T, target string, headers ...string) (*net.TCPConn, *http.Response) {
	t.Helper()
	conn := w.dial()
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n%s\r\n", target, strings.Join(headers, "\r\n"))
	resp, err := readHead(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn), resp
}

// A tunnel that is not opened is decided once, for the whole host: it is denied
// only where nothing at all is allowed.
func TestPassthrough(t *testing.T) {
	for _, c := range []struct {
		name, robots string
		status       int
		decision     string
	}{
		{"everything denied", "User-agent: *\nDisallow: /\n", 403, `deny;reason=rule;token="ExampleBot";group="*";line=2;rule="Disallow: /"`},
		{"denied by a wild card", "User-agent: *\nDisallow: *\n", 403, `deny;reason=rule`},
		{"denied, but for an Allow", "User-agent: *\nDisallow: /\nAllow: /open\n", 200, ""},
		{"an Allow of another group", "User-agent: *\nDisallow: /\nUser-agent: OtherBot\nAllow: /\n", 403, "deny;reason=rule"},
		{"an Allow of the crawler's group", "User-agent: *\nDisallow: /\nUser-agent: ExampleBot\nDisallow: /\nAllow: /x\n", 200, ""},
		{"paths denied", exampleRobots, 200, ""},
		{"the root only denied", "User-agent: *\nDisallow: /$\n", 403, "deny;reason=rule"},
		{"no rules", "# nothing\n", 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, options{robots: c.robots, gate: unseen})
			conn, resp := w.connectTo(t, host(w.https), "User-Agent: ExampleBot/1.0", "")
			wantStatus(t, resp, c.status)
			wantHeader(t, resp, headerDecision, c.decision)
			if c.status != 200 {
				wantHeader(t, resp, "Content-Type", "application/problem+json")
				wantHeader(t, resp, proxyStatus, "robotsgate;error=http_request_denied")
				wantArrived(t, w)
				return
			}
			// The client speaks to the origin itself: no path is looked at.
			inside := tls.Client(conn, &tls.Config{RootCAs: w.originRoots, ServerName: "127.0.0.1"})
			request := "GET /private/x HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n"
			io.WriteString(inside, request)
			if answer := readAnswer(t, inside, request); statusOf(answer) != "200" || strings.Contains(answer, "Robots-Gate") {
				t.Errorf("inside: %s", answer)
			}
			wantArrived(t, w, "GET /private/x")
			inside.Close()
			x := w.next(t)
			if !x.Tunnel || x.Method != "CONNECT" || x.URL != w.https || x.Status != 200 || x.Bytes < 1000 || x.Decision == nil || !x.Decision.Allow || x.Error != "" {
				t.Errorf("record: %+v", x)
			}
			if n := len(w.exchanges); n != 1 {
				t.Errorf("%d records, want 1", n)
			}
		})
	}
}

// What is put in force while a tunnel is looked at does not concern it any more:
// the list that lets it through and the rules that judge it are of one configuration.
func TestPassthroughByOneConfiguration(t *testing.T) {
	var w *world
	w = newWorld(t, options{robots: "User-agent: *\nDisallow: /\n", gate: func(o *Options) {
		o.Settings.Config = "before"
		o.Settings.Passthrough = func(string) bool {
			after := *w.gate.settings.Load()
			after.Config = "after"
			w.gate.Use(after)
			return true
		}
	}})
	_, resp := w.connectTo(t, host(w.https), "User-Agent: ExampleBot/1.0", "")
	wantStatus(t, resp, 403)
	if x := w.next(t); x.Config != "before" {
		t.Errorf("passed through by the configuration before, decided by the one %s", x.Config)
	}
}

func TestPassthroughUnreachable(t *testing.T) {
	w := newWorld(t, options{gate: unseen})
	_, resp := w.connectTo(t, "127.0.0.1:1")
	wantStatus(t, resp, 403)
	wantHeader(t, resp, headerDecision, "deny;reason=unreachable")
	wantHeader(t, resp, "Retry-After", "5")
	_, resp = w.connectTo(t, "10.0.0.1:443")
	wantStatus(t, resp, 403)
	wantHeader(t, resp, headerDecision, "")
	wantHeader(t, resp, proxyStatus, "robotsgate;error=destination_ip_prohibited")
	_, resp = w.connectTo(t, "nothing.example.com:443")
	wantStatus(t, resp, 502)
	wantHeader(t, resp, headerDecision, "")
	wantHeader(t, resp, proxyStatus, "robotsgate;error=dns_error")

	// Allowed, and then the origin is not there.
	w = newWorld(t, options{gate: unseen, engine: allowHost(t, "127.0.0.1")})
	_, resp = w.connectTo(t, "127.0.0.1:1")
	wantStatus(t, resp, 502)
	wantHeader(t, resp, headerDecision, "allow;reason=override")
	wantHeader(t, resp, proxyStatus, "robotsgate;error=connection_refused")
}

// Of a tunnel that is not opened the gate sees one User-Agent: that of CONNECT.
func TestPassthroughCrawler(t *testing.T) {
	w := newWorld(t, options{gate: unseen, robots: "User-agent: *\nDisallow: /\nUser-agent: PartnerBot\nAllow: /\n", engine: func(c *policy.Config) {
		c.Crawlers.Known = []*policy.Crawler{
			{Name: "watched", UserAgents: []glob.Glob{glob.Text("watched*")}, Mode: policy.Report, DenyStatus: 403},
			{Name: "partner", UserAgents: []glob.Glob{glob.Text("*partner*")}, Tokens: []string{"PartnerBot"}, Mode: policy.Enforce, DenyStatus: 403},
			{Name: "legal", UserAgents: []glob.Glob{glob.Text("legal*")}, Mode: policy.Enforce, DenyStatus: 451},
		}
	}})
	for _, c := range []struct {
		userAgent, crawler string
		status             int
	}{
		{"Watched/1.0", "watched", 200},
		{"Mozilla/5.0 (partner)", "partner", 200},
		{"LegalBot", "legal", 451},
		{"Other", "default", 403},
		{"", "default", 403},
	} {
		header := "User-Agent: " + c.userAgent + "\r\n"
		if c.userAgent == "" {
			header = ""
		}
		conn, resp := w.connectTo(t, host(w.https), header)
		wantStatus(t, resp, c.status)
		conn.Close()
		if x := w.next(t); x.Crawler != c.crawler || x.Status != c.status {
			t.Errorf("%s: the record says %s, %d", c.userAgent, x.Crawler, x.Status)
		}
	}
}

// rawOrigin starts a server that speaks no HTTP, and a gate that tunnels to it.
func rawOrigin(t *testing.T, serve func(*net.TCPConn)) (w *world, target string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go func() {
				defer conn.Close()
				serve(conn.(*net.TCPConn))
			}()
		}
	}()
	return newWorld(t, options{gate: unseen, engine: allowHost(t, "127.0.0.1")}), l.Addr().String()
}

// A tunnel in which neither side sends anything ends after limits.idle_timeout.
func TestPassthroughIdle(t *testing.T) {
	w := newWorld(t, options{engine: allowHost(t, "127.0.0.1"), gate: func(o *Options) {
		unseen(o)
		o.Limits.IdleTimeout = short
	}})
	conn := w.dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host(w.https))
	if resp, err := readHead(conn); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("got %v, want the end", err)
	}
}

// Either side may end its half and go on listening.
func TestPassthroughHalfClose(t *testing.T) {
	t.Run("client first", func(t *testing.T) {
		w, target := rawOrigin(t, func(conn *net.TCPConn) {
			all, _ := io.ReadAll(conn)
			fmt.Fprintf(conn, "read %d to the end", len(all))
		})
		// Bytes that come together with CONNECT are not lost.
		conn := w.dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\nfirst", target)
		if resp, err := readHead(conn); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		conn.Write(bytes.Repeat([]byte("x"), 1<<20))
		conn.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(conn)
		if want := fmt.Sprintf("read %d to the end", 1<<20+5); string(answer) != want || err != nil {
			t.Errorf("got %q, %v, want %q", answer, err, want)
		}
		if x := w.next(t); x.Bytes != int64(len(answer)) || x.Duration <= 0 {
			t.Errorf("the record says %d bytes in %v", x.Bytes, x.Duration)
		}
	})
	t.Run("origin first", func(t *testing.T) {
		got := make(chan string, 1)
		w, target := rawOrigin(t, func(conn *net.TCPConn) {
			io.WriteString(conn, "bye")
			conn.CloseWrite()
			rest, _ := io.ReadAll(conn)
			got <- string(rest)
		})
		conn, resp := w.connectTo(t, target)
		wantStatus(t, resp, 200)
		if said, err := io.ReadAll(conn); string(said) != "bye" || err != nil {
			t.Errorf("got %q, %v", said, err)
		}
		io.WriteString(conn, "so long")
		conn.CloseWrite()
		if said := receive(t, got, "what the client said"); said != "so long" {
			t.Errorf("the origin read %q", said)
		}
		w.next(t)
	})
}

// A side that breaks off ends the tunnel, whether or not the other one would
// ever say a word.
func TestPassthroughBrokenOff(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		opened, release := make(chan bool, 1), make(chan bool)
		w, target := rawOrigin(t, func(conn *net.TCPConn) {
			opened <- true
			<-release // reads nothing, says nothing
		})
		defer close(release)
		conn, resp := w.connectTo(t, target)
		wantStatus(t, resp, 200)
		receive(t, opened, "the tunnel")
		conn.SetLinger(0) // a reset
		conn.Close()
		w.next(t)
	})
	t.Run("origin", func(t *testing.T) {
		w, target := rawOrigin(t, func(conn *net.TCPConn) {
			conn.Read(make([]byte, 1))
			conn.SetLinger(0)
		})
		conn, resp := w.connectTo(t, target)
		wantStatus(t, resp, 200)
		conn.Write([]byte("xx")) // and the client stays
		w.next(t)
	})
}
