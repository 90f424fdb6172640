package origin_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// restrict makes the gate's egress rules forbid a host pattern and all ports but some origins'.
func restrict(t *testing.T, g *proxytest.Gate, deny string, origins ...string) {
	t.Helper()
	e := proxy.Egress{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: g.OriginRoots}
	if deny != "" {
		pattern, err := glob.Host(deny)
		if err != nil {
			t.Fatal(err)
		}
		e.DenyHosts = []glob.Glob{pattern}
	}
	for _, origin := range origins {
		port, err := strconv.ParseUint(origin[strings.LastIndexByte(origin, ':')+1:], 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		e.Ports = append(e.Ports, int(port))
	}
	s := g.Proxy.Settings
	transport, err := proxy.NewTransport(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	s.Upstream = transport
	g.Proxy.Use(s)
}

// A CONNECT to a host or port that the lists forbid is refused with the reason, and recorded.
func TestForbiddenConnect(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	restrict(t, g, "*.internal.example", g.HTTPS)
	port := g.HTTPS[len("https://127.0.0.1:"):]
	conn := g.Dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	r := bufio.NewReader(conn)
	for _, c := range []struct{ target, origin, why string }{
		{"db.internal.example:" + port, "https://db.internal.example:" + port, "host db.internal.example is in egress.deny_hosts"},
		{"DB.Internal.example.:" + port, "https://db.internal.example:" + port, "host db.internal.example is in egress.deny_hosts"},
		{proxytest.Host(g.HTTP), "https://" + proxytest.Host(g.HTTP), "port " + g.HTTP[len("http://127.0.0.1:"):] + " is not in egress.ports"},
		{"shop.example:22", "https://shop.example:22", "port 22 is not in egress.ports"},
		{"shop.example:80", "http://shop.example", "port 80 is not in egress.ports"},
		{"[::1]:25", "https://[::1]:25", "port 25 is not in egress.ports"},
	} {
		resp, body := proxytest.ConnectOn(t, conn, r, c.target)
		wantProhibited(t, resp)
		if status := resp.Header.Get("Proxy-Status"); !strings.Contains(status, `details="`+c.why+`"`) || !strings.Contains(body, c.why) || !strings.Contains(body, "urn:robotsgate:prohibited") {
			t.Errorf("%s: the reason is not %q: %s\n%s", c.target, c.why, status, body)
		}
		if x := g.Next(t); x.Method != http.MethodConnect || x.Origin != c.origin || x.Address() != c.origin || x.Status != 403 || x.Decision != "" ||
			x.Refused != record.ByGuard || x.Error != c.why || !x.Tunnel || x.Crawler != "default" {
			t.Errorf("%s: the record is %+v", c.target, x)
		}
	}
	resp, _ := proxytest.ConnectOn(t, conn, r, proxytest.Host(g.HTTPS)) // on the same connection
	proxytest.WantStatus(t, resp, 200)
	for _, own := range []string{"robotsgate.invalid:443", "robotsgate.invalid:80"} {
		_, resp := g.ConnectTo(t, own)
		proxytest.WantStatus(t, resp, 200)
	}
	if n := g.Count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// Clear text behind a CONNECT that is refused is not sent through the tunnel, whether the client
// waits for the answer or not.
func TestForbiddenConnectInClear(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	restrict(t, g, "", g.HTTPS)
	request := "GET /page HTTP/1.1\r\nHost: " + proxytest.Host(g.HTTP) + "\r\nConnection: close\r\n\r\n"
	answer := g.Raw("CONNECT " + proxytest.Host(g.HTTP) + " HTTP/1.1\r\nHost: x\r\n\r\n" + request)
	if proxytest.StatusOf(answer) != "403" || strings.Contains(answer, " 200 ") || strings.Contains(answer, "hello") {
		t.Errorf("got %s", answer)
	}
	answer = g.Raw("CONNECT " + proxytest.Host(g.HTTP) + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(len(request)) + "\r\nConnection: close\r\n\r\n" + request)
	if proxytest.StatusOf(answer) != "403" {
		t.Errorf("with a body: got %s", answer)
	}
	// Neither is clear text in a tunnel that the lists permit, to another port.
	conn := g.Tunnel(proxytest.Host(g.HTTPS))
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	io.WriteString(conn, request)
	if answer := proxytest.ReadAnswer(t, conn, request); proxytest.StatusOf(answer) != "421" {
		t.Errorf("got %s", answer)
	}
	if n := g.Count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// Requests in a tunnel are refused once the lists forbid its destination.
func TestForbiddenAfterConnect(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{})
	conn := tls.Client(g.Tunnel(proxytest.Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1"})
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	r := bufio.NewReader(conn)
	for _, want := range []int{200, 403} {
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+proxytest.Host(g.HTTPS)+"\r\n\r\n")
		resp, _ := proxytest.AnswerTo(t, r, http.MethodGet)
		proxytest.WantStatus(t, resp, want)
		restrict(t, g, "127.0.0.*", g.HTTPS)
	}
}

// A client needs its login to learn what the lists forbid, and the record names its crawler.
func TestForbiddenConnectWithLogin(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: func(c *policy.Config) {
		proxytest.Team(true)(c)
		c.Crawlers.Known[1].Login = policy.Login{} // known by its User-Agent alone
	}})
	restrict(t, g, "", g.HTTPS)
	for _, c := range []struct{ header, crawler string }{
		{"Proxy-Authorization: " + proxytest.Basic("team", proxytest.NewsPassword), "news"},
		{"User-Agent: ExampleBot/1.0", "shop"},
		{"Accept: */*", ""}, // its User-Agent is known inside only
	} {
		_, resp := g.ConnectTo(t, "shop.example:22", c.header)
		wantProhibited(t, resp)
		if x := g.Next(t); x.Crawler != c.crawler {
			t.Errorf("%s: the record names the crawler %q, want %q", c.header, x.Crawler, c.crawler)
		}
	}
	g = proxytest.Start(t, proxytest.Options{Engine: proxytest.Team(true)})
	restrict(t, g, "", g.HTTPS)
	_, resp := g.ConnectTo(t, "shop.example:22")
	proxytest.WantStatus(t, resp, 407)
}
