package proxy_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

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
		{"paths denied", proxytest.ExampleRobots, 200, ""},
		{"the root only denied", "User-agent: *\nDisallow: /$\n", 403, "deny;reason=rule"},
		{"no rules", "# nothing\n", 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := proxytest.Start(t, proxytest.Options{Robots: c.robots, Proxy: proxytest.PassThrough})
			conn, resp := g.ConnectTo(t, proxytest.Host(g.HTTPS), "User-Agent: ExampleBot/1.0")
			proxytest.WantStatus(t, resp, c.status)
			proxytest.WantHeader(t, resp, "Robots-Gate-Decision", c.decision)
			if c.status != 200 {
				proxytest.WantHeader(t, resp, "Content-Type", "application/problem+json")
				proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=http_request_denied")
				proxytest.WantArrived(t, g)
				return
			}
			// The client speaks to the origin itself: no path is looked at.
			inside := tls.Client(conn, &tls.Config{RootCAs: g.OriginRoots, ServerName: "127.0.0.1"})
			request := "GET /private/x HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n"
			io.WriteString(inside, request)
			if answer := proxytest.ReadAnswer(t, inside, request); proxytest.StatusOf(answer) != "200" || strings.Contains(answer, "Robots-Gate") {
				t.Errorf("inside: %s", answer)
			}
			proxytest.WantArrived(t, g, "GET /private/x")
			inside.Close()
			x := g.Next(t)
			if !x.Tunnel || x.Method != "CONNECT" || x.Address() != g.HTTPS || x.Status != 200 || x.Bytes < 1000 || x.Decision != "allow" || x.Error != "" {
				t.Errorf("record: %+v", x)
			}
			if n := len(g.Records()); n != 1 {
				t.Errorf("%d records, want 1", n)
			}
		})
	}
}

// What is put in force while a tunnel is looked at does not concern it any more:
// the list that lets it through and the rules that judge it are of one configuration.
func TestPassthroughByOneConfiguration(t *testing.T) {
	var g *proxytest.Gate
	g = proxytest.Start(t, proxytest.Options{Robots: "User-agent: *\nDisallow: /\n", Proxy: func(o *proxy.Options) {
		o.Settings.Config = "before"
		o.Settings.Passthrough = func(string) bool {
			after := g.Proxy.Settings
			after.Config = "after"
			g.Proxy.Use(after)
			return true
		}
	}})
	_, resp := g.ConnectTo(t, proxytest.Host(g.HTTPS), "User-Agent: ExampleBot/1.0")
	proxytest.WantStatus(t, resp, 403)
	if x := g.Next(t); x.Config != "before" {
		t.Errorf("passed through by the configuration before, decided by the one %s", x.Config)
	}
}

func TestPassthroughUnreachable(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: proxytest.PassThrough})
	_, resp := g.ConnectTo(t, "127.0.0.1:1")
	proxytest.WantStatus(t, resp, 403)
	proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=unreachable")
	proxytest.WantHeader(t, resp, "Retry-After", "5")
	_, resp = g.ConnectTo(t, "10.0.0.1:443")
	proxytest.WantStatus(t, resp, 403)
	proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "")
	proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=destination_ip_prohibited")
	_, resp = g.ConnectTo(t, "nothing.example.com:443")
	proxytest.WantStatus(t, resp, 502)
	proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "")
	proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=dns_error")

	// Allowed, and then the origin is not there.
	g = proxytest.Start(t, proxytest.Options{Proxy: proxytest.PassThrough, Engine: proxytest.AllowHost(t, "127.0.0.1")})
	_, resp = g.ConnectTo(t, "127.0.0.1:1")
	proxytest.WantStatus(t, resp, 502)
	proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow;reason=override")
	proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=connection_refused")
}

// Of a tunnel that is not opened the gate sees one User-Agent: that of CONNECT.
func TestPassthroughCrawler(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Proxy: proxytest.PassThrough, Robots: "User-agent: *\nDisallow: /\nUser-agent: PartnerBot\nAllow: /\n", Engine: func(c *policy.Config) {
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
		var header []string
		if c.userAgent != "" {
			header = []string{"User-Agent: " + c.userAgent}
		}
		conn, resp := g.ConnectTo(t, proxytest.Host(g.HTTPS), header...)
		proxytest.WantStatus(t, resp, c.status)
		conn.Close()
		if x := g.Next(t); x.Crawler != c.crawler || x.Status != c.status {
			t.Errorf("%s: the record says %s, %d", c.userAgent, x.Crawler, x.Status)
		}
	}
}

// A tunnel in which neither side sends anything ends after limits.idle_timeout.
func TestPassthroughIdle(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: proxytest.AllowHost(t, "127.0.0.1"), Proxy: func(o *proxy.Options) {
		proxytest.PassThrough(o)
		o.Limits.IdleTimeout = proxytest.Short
	}})
	conn := g.Dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", proxytest.Host(g.HTTPS))
	if resp, err := proxytest.ReadHead(conn); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("got %v, want the end", err)
	}
}

// Either side may end its half and go on listening.
func TestPassthroughHalfClose(t *testing.T) {
	t.Run("client first", func(t *testing.T) {
		g, target := proxytest.StartRawOrigin(t, func(conn *net.TCPConn) {
			all, _ := io.ReadAll(conn)
			fmt.Fprintf(conn, "read %d to the end", len(all))
		})
		// Bytes that come together with CONNECT are not lost.
		conn := g.Dial()
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\nfirst", target)
		if resp, err := proxytest.ReadHead(conn); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		conn.Write(bytes.Repeat([]byte("x"), 1<<20))
		conn.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(conn)
		if want := fmt.Sprintf("read %d to the end", 1<<20+5); string(answer) != want || err != nil {
			t.Errorf("got %q, %v, want %q", answer, err, want)
		}
		if x := g.Next(t); x.Bytes != int64(len(answer)) || x.Duration <= 0 {
			t.Errorf("the record says %d bytes in %v s", x.Bytes, x.Duration)
		}
	})
	t.Run("origin first", func(t *testing.T) {
		got := make(chan string, 1)
		g, target := proxytest.StartRawOrigin(t, func(conn *net.TCPConn) {
			io.WriteString(conn, "bye")
			conn.CloseWrite()
			rest, _ := io.ReadAll(conn)
			got <- string(rest)
		})
		conn, resp := g.ConnectTo(t, target)
		proxytest.WantStatus(t, resp, 200)
		if said, err := io.ReadAll(conn); string(said) != "bye" || err != nil {
			t.Errorf("got %q, %v", said, err)
		}
		io.WriteString(conn, "so long")
		conn.CloseWrite()
		if said := proxytest.Receive(t, got, "what the client said"); said != "so long" {
			t.Errorf("the origin read %q", said)
		}
		g.Next(t)
	})
}

// A side that breaks off ends the tunnel, whether or not the other one would
// ever say a word.
func TestPassthroughBrokenOff(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		opened, release := make(chan bool, 1), make(chan bool)
		g, target := proxytest.StartRawOrigin(t, func(conn *net.TCPConn) {
			opened <- true
			<-release // reads nothing, says nothing
		})
		defer close(release)
		conn, resp := g.ConnectTo(t, target)
		proxytest.WantStatus(t, resp, 200)
		proxytest.Receive(t, opened, "the tunnel")
		conn.SetLinger(0) // a reset
		conn.Close()
		g.Next(t)
	})
	t.Run("origin", func(t *testing.T) {
		g, target := proxytest.StartRawOrigin(t, func(conn *net.TCPConn) {
			conn.Read(make([]byte, 1))
			conn.SetLinger(0)
		})
		conn, resp := g.ConnectTo(t, target)
		proxytest.WantStatus(t, resp, 200)
		conn.Write([]byte("xx")) // and the client stays
		g.Next(t)
	})
}
