package proxy

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

	"robotsgate/policy"
	"robotsgate/policy/glob"
)

// restrict makes the gate's egress rules forbid a host pattern and all ports but some origins'.
func (w *world) restrict(t *testing.T, deny string, origins ...string) {
	t.Helper()
	e := Egress{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: w.originRoots}
	if deny != "" {
		g, err := glob.Host(deny)
		if err != nil {
			t.Fatal(err)
		}
		e.DenyHosts = []glob.Glob{g}
	}
	for _, origin := range origins {
		port, err := strconv.ParseUint(origin[strings.LastIndexByte(origin, ':')+1:], 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		e.Ports = append(e.Ports, int(port))
	}
	s := *w.gate.settings.Load()
	transport, err := NewTransport(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	s.Upstream = transport
	w.gate.Use(s)
}

// A CONNECT to a host or port that the lists forbid is refused with the reason, and recorded.
func TestForbiddenConnect(t *testing.T) {
	w := newWorld(t, options{})
	w.restrict(t, "*.internal.example", w.https)
	port := w.https[len("https://127.0.0.1:"):]
	conn := w.dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(conn)
	for _, c := range []struct{ target, origin, why string }{
		{"db.internal.example:" + port, "https://db.internal.example:" + port, "host db.internal.example is in egress.deny_hosts"},
		{"DB.Internal.example.:" + port, "https://db.internal.example:" + port, "host db.internal.example is in egress.deny_hosts"},
		{host(w.http), "https://" + host(w.http), "port " + w.http[len("http://127.0.0.1:"):] + " is not in egress.ports"},
		{"shop.example:22", "https://shop.example:22", "port 22 is not in egress.ports"},
		{"shop.example:80", "http://shop.example", "port 80 is not in egress.ports"},
		{"[::1]:25", "https://[::1]:25", "port 25 is not in egress.ports"},
	} {
		resp, body := connectOn(t, conn, r, c.target)
		wantProhibited(t, resp)
		if status := resp.Header.Get(proxyStatus); !strings.Contains(status, `details="`+c.why+`"`) || !strings.Contains(body, c.why) || !strings.Contains(body, "urn:robotsgate:prohibited") {
			t.Errorf("%s: the reason is not %q: %s\n%s", c.target, c.why, status, body)
		}
		if x := w.next(t); x.Method != http.MethodConnect || x.Origin != c.origin || x.URL != c.origin || x.Status != 403 || x.Decision != nil ||
			x.Refused != ByGuard || x.Error != c.why || !x.Tunnel || x.Crawler != "default" {
			t.Errorf("%s: the record is %+v", c.target, x)
		}
	}
	resp, _ := connectOn(t, conn, r, host(w.https)) // on the same connection
	wantStatus(t, resp, 200)
	for _, own := range []string{"robotsgate.invalid:443", "robotsgate.invalid:80"} {
		_, resp := w.connectTo(t, own)
		wantStatus(t, resp, 200)
	}
	if n := w.count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// Clear text behind a CONNECT that is refused is not sent through the tunnel, whether the client
// waits for the answer or not.
func TestForbiddenConnectInClear(t *testing.T) {
	w := newWorld(t, options{})
	w.restrict(t, "", w.https)
	request := "GET /page HTTP/1.1\r\nHost: " + host(w.http) + "\r\nConnection: close\r\n\r\n"
	answer := w.raw("CONNECT " + host(w.http) + " HTTP/1.1\r\nHost: x\r\n\r\n" + request)
	if statusOf(answer) != "403" || strings.Contains(answer, " 200 ") || strings.Contains(answer, "hello") {
		t.Errorf("got %s", answer)
	}
	answer = w.raw("CONNECT " + host(w.http) + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(len(request)) + "\r\nConnection: close\r\n\r\n" + request)
	if statusOf(answer) != "403" {
		t.Errorf("with a body: got %s", answer)
	}
	// Neither is clear text in a tunnel that the lists permit, to another port.
	conn := w.tunnel(host(w.https))
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, request)
	if answer := readAnswer(t, conn, request); statusOf(answer) != "421" {
		t.Errorf("got %s", answer)
	}
	if n := w.count(); n > 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// Requests in a tunnel are refused once the lists forbid its destination.
func TestForbiddenAfterConnect(t *testing.T) {
	w := newWorld(t, options{})
	conn := tls.Client(w.tunnel(host(w.https)), &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1"})
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(conn)
	for _, want := range []int{200, 403} {
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+host(w.https)+"\r\n\r\n")
		resp, _ := answerTo(t, r, http.MethodGet)
		wantStatus(t, resp, want)
		w.restrict(t, "127.0.0.*", w.https)
	}
}

// A client needs its login to learn what the lists forbid, and the record names its crawler.
func TestForbiddenConnectWithLogin(t *testing.T) {
	w := newWorld(t, options{engine: func(c *policy.Config) {
		team(true)(c)
		c.Crawlers.Known[1].Login = policy.Login{} // known by its User-Agent alone
	}})
	w.restrict(t, "", w.https)
	for _, c := range []struct{ header, crawler string }{
		{"Proxy-Authorization: " + basic("team", newsPassword), "news"},
		{"User-Agent: ExampleBot/1.0", "shop"},
		{"Accept: */*", ""}, // its User-Agent is known inside only
	} {
		_, resp := w.connectTo(t, "shop.example:22", c.header+"\r\n")
		wantProhibited(t, resp)
		if x := w.next(t); x.Crawler != c.crawler {
			t.Errorf("%s: the record names the crawler %q, want %q", c.header, x.Crawler, c.crawler)
		}
	}
	w = newWorld(t, options{engine: team(true)})
	w.restrict(t, "", w.https)
	_, resp := w.connectTo(t, "shop.example:22")
	wantStatus(t, resp, 407)
}
