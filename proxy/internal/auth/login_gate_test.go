package auth_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A client needs only a login in its proxy URL, for http and https.
func TestLogin(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: proxytest.Team(true)})
	for _, v := range []struct {
		name, origin string
		http2        bool
	}{{"http", g.HTTP, false}, {"https HTTP/1.1", g.HTTPS, false}, {"https HTTP/2", g.HTTPS, true}} {
		for _, c := range []struct{ password, crawler string }{{proxytest.NewsPassword, "news"}, {proxytest.ShopPassword, "shop"}} {
			client := g.ClientAs(t, v.http2, "team", c.password)
			for range 3 {
				resp, _ := proxytest.Send(t, client, http.MethodGet, v.origin+"/page", nil)
				proxytest.WantStatus(t, resp, 200)
				if x := g.Next(t); x.Crawler != c.crawler {
					t.Errorf("%s: the crawler is %s, want %s", v.name, x.Crawler, c.crawler)
				}
				for name, values := range g.Last().Header {
					if strings.Contains(strings.ToLower(name), "proxy") || strings.Contains(fmt.Sprint(values), proxytest.Basic("team", c.password)[6:]) {
						t.Errorf("%s: the origin receives %s: %s", v.name, name, values)
					}
				}
			}
		}
	}
}

// askOn sends one request in clear over a connection that stays open.
func askOn(t *testing.T, conn net.Conn, r *bufio.Reader, uri string, headers ...string) (*http.Response, string) {
	t.Helper()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: ExampleBot/1.0\r\n%s\r\n", uri, strings.Join(append(headers, ""), "\r\n"))
	return proxytest.AnswerTo(t, r, http.MethodGet)
}

const authenticate = `Basic realm="robotsgate", charset="UTF-8"`

// A request without the required login gets a 407, on a connection that stays open. Each
// request on a connection is identified by its own login.
func TestLoginRequired(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: proxytest.Team(true)})
	conn := g.Dial()
	defer conn.Close()
	r := bufio.NewReader(conn)
	auth := func(user, password string) string { return "Proxy-Authorization: " + proxytest.Basic(user, password) }
	for _, c := range []struct {
		name    string
		headers []string
		status  int
		crawler string
	}{
		{"none", nil, 407, ""},
		{"wrong", []string{auth("team", "guess")}, 407, ""},
		{"right", []string{auth("team", proxytest.NewsPassword)}, 200, "news"},
		{"none, after another's", nil, 407, ""},
		{"another", []string{auth("team", proxytest.ShopPassword)}, 200, "shop"},
		{"empty, as wget2 sends it", []string{auth("", "")}, 407, ""},
		{"unknown user", []string{auth("nobody", proxytest.NewsPassword)}, 407, ""},
		{"from the wrong address", []string{auth("last", proxytest.LastPassword)}, 407, ""},
		{"doubled", []string{auth("team", proxytest.NewsPassword), auth("team", proxytest.NewsPassword)}, 407, ""},
		{"with another in front", []string{auth("team", "guess"), auth("team", proxytest.NewsPassword)}, 407, ""},
		{"two in one", []string{auth("team", proxytest.NewsPassword) + ", " + proxytest.Basic("team", proxytest.ShopPassword)}, 407, ""},
		{"under another name", []string{"Proxy_Authorization: " + proxytest.Basic("team", proxytest.NewsPassword)}, 407, ""},
		{"for the origin", []string{"Authorization: " + proxytest.Basic("team", proxytest.NewsPassword)}, 407, ""},
		{"named by Connection", []string{auth("team", proxytest.NewsPassword), "Connection: Proxy-Authorization"}, 200, "news"},
		{"another scheme", []string{"Proxy-Authorization: Bearer x"}, 407, ""},
		{"a hash", []string{auth("team", string(proxytest.Hashes()[proxytest.NewsPassword]))}, 407, ""},
	} {
		resp, body := askOn(t, conn, r, g.HTTP+"/page", c.headers...)
		x := g.Next(t)
		if resp.StatusCode != c.status || x.Crawler != c.crawler || resp.Close {
			t.Errorf("%s: status %d, crawler %q, close %v, want %d, %q", c.name, resp.StatusCode, x.Crawler, resp.Close, c.status, c.crawler)
		}
		if c.status == 407 {
			proxytest.WantHeader(t, resp, "Proxy-Authenticate", authenticate)
			proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=http_request_denied")
			if x.Decision != "" || resp.Header.Get("Robots-Gate-Decision") != "" || resp.Header.Get("Robots-Gate-Id") == "" {
				t.Errorf("%s: decision %q, headers %v", c.name, x.Decision, resp.Header)
			}
			if !strings.Contains(body, "http://USER:PASSWORD@HOST:PORT") && c.headers == nil {
				t.Errorf("%s: the refusal does not say what to do:\n%s", c.name, body)
			}
			if empty := strings.HasPrefix(c.name, "empty"); strings.Contains(body, "--http-proxy-user") != empty || empty && strings.Contains(body, "http://USER:PASSWORD") {
				t.Errorf("%s: wrong advice on an empty login:\n%s", c.name, body)
			}
		}
	}
	proxytest.WantArrived(t, g, "GET /page", "GET /page", "GET /page")
	for _, r := range g.Requests() {
		for name := range r.Header {
			if strings.Contains(strings.ToLower(name), "proxy") {
				t.Errorf("the origin receives %s", name)
			}
		}
	}
}

// The login of CONNECT counts for all requests in the tunnel. Proxy-Authorization inside the
// tunnel is ignored and removed.
func TestLoginAtConnect(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: proxytest.Team(true)})
	auth := "Proxy-Authorization: " + proxytest.Basic("team", proxytest.NewsPassword)
	conn := g.Dial()
	defer conn.Close()
	r := bufio.NewReader(conn)
	for _, headers := range [][]string{nil, {"Proxy-Authorization: " + proxytest.Basic("team", "guess")}, {auth, auth}} {
		resp, _ := proxytest.ConnectOn(t, conn, r, proxytest.Host(g.HTTPS), headers...)
		proxytest.WantStatus(t, resp, 407)
		proxytest.WantHeader(t, resp, "Proxy-Authenticate", authenticate)
		if x := g.Next(t); x.Method != http.MethodConnect || x.Crawler != "" || x.Status != 407 {
			t.Errorf("the record: %s, crawler %q, %d", x.Method, x.Crawler, x.Status)
		}
	}
	// The same connection, used in clear with a login, then for a tunnel with another.
	resp, _ := askOn(t, conn, r, g.HTTP+"/clear", auth)
	proxytest.WantStatus(t, resp, 200)
	resp, _ = proxytest.ConnectOn(t, conn, r, proxytest.Host(g.HTTPS))
	proxytest.WantStatus(t, resp, 407)
	resp, _ = proxytest.ConnectOn(t, conn, r, proxytest.Host(g.HTTPS), "Proxy-Authorization: "+proxytest.Basic("team", proxytest.ShopPassword))
	proxytest.WantStatus(t, resp, 200)
	inside := tls.Client(conn, &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1", NextProtos: []string{"http/1.1"}})
	ir := bufio.NewReader(inside)
	for _, c := range []struct {
		agent  string
		header string
		status int
	}{
		{"ExampleBot/1.0", "", 200},
		{"ExampleBot/1.0", auth + "\r\n", 200},
		{"curl", "", 403}, // shop is identified by its User-Agent too
		{"curl", auth + "\r\n", 403},
	} {
		fmt.Fprintf(inside, "GET /inside HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n%s\r\n", proxytest.Host(g.HTTPS), c.agent, c.header)
		resp, body := proxytest.AnswerTo(t, ir, http.MethodGet)
		if resp.StatusCode != c.status || resp.Header.Get("Proxy-Authenticate") != "" {
			t.Errorf("%s %s: %d, %v, want %d", c.agent, c.header, resp.StatusCode, resp.Header, c.status)
		}
		if c.status == 403 && !strings.Contains(body, "unknown-client") {
			t.Errorf("%s: %s", c.agent, body)
		}
		if c.status == 200 && g.Last().Header.Get("Proxy-Authorization") != "" {
			t.Error("the origin receives the login")
		}
	}
}

// If a crawler without a login may use the tunnel, CONNECT needs none. A request inside that
// matches no crawler is refused, also with a login of its own.
func TestTunnelOfUnknownClients(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: func(c *policy.Config) {
		proxytest.Team(true)(c)
		c.Crawlers.Known = append(c.Crawlers.Known, &policy.Crawler{Name: "open", UserAgents: []glob.Glob{glob.Text("Open*")}, Mode: policy.Enforce, DenyStatus: 403})
	}})
	for _, http2 := range []bool{false, true} {
		client := g.ClientVia("http", g.Addr, http2)
		for _, c := range []struct {
			agent, crawler string
			status         int
		}{{"OpenReader/1", "open", 200}, {"curl/8", "", 403}} {
			req, _ := http.NewRequest(http.MethodGet, g.HTTPS+"/page", nil)
			req.Header.Set("User-Agent", c.agent)
			req.Header.Set("Proxy-Authorization", proxytest.Basic("team", proxytest.NewsPassword))
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			proxytest.WantStatus(t, resp, c.status)
			if x := g.Next(t); x.Crawler != c.crawler {
				t.Errorf("%s: crawler %q", c.agent, x.Crawler)
			}
			if c.status == 200 && g.Last().Header.Get("Proxy-Authorization") != "" {
				t.Error("the origin receives the login that was sent inside")
			}
			if c.status == 403 && !strings.Contains(string(text), "has to come with CONNECT") {
				t.Errorf("the refusal does not say what to do:\n%s", text)
			}
		}
	}
}

// If no crawler could match with a login, the answer is a 403 in place of a 407.
func TestUnknownClientWithoutLogins(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Engine: func(c *policy.Config) {
		proxytest.Team(true)(c)
		c.Crawlers.Known = c.Crawlers.Known[2:] // from elsewhere only
	}})
	resp, body := g.Get(g.HTTP + "/page")
	proxytest.WantStatus(t, resp, 403)
	proxytest.WantHeader(t, resp, "Proxy-Authenticate", "")
	proxytest.WantHeader(t, resp, "Proxy-Status", `robotsgate;error=http_request_denied;details="unknown client"`)
	if !strings.Contains(body, "127.0.0.1") {
		t.Errorf("the refusal does not name the client:\n%s", body)
	}
	_, resp = g.ConnectTo(t, proxytest.Host(g.HTTPS), "Proxy-Authorization: "+proxytest.Basic("last", proxytest.LastPassword))
	proxytest.WantStatus(t, resp, 403)
	if n := g.Count(); n != 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// If unknown clients may use the gate, a wrong login counts as none.
func TestWrongLoginOfPermittedClient(t *testing.T) {
	var said gatetest.Output
	g := proxytest.Start(t, proxytest.Options{Engine: proxytest.Team(false), Proxy: func(o *proxy.Options) {
		o.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}})
	for range 3 {
		client := g.ClientAs(t, true, "team", "a bad guess")
		for _, origin := range []string{g.HTTP, g.HTTPS} {
			resp, _ := proxytest.Send(t, client, http.MethodGet, origin+"/page", nil)
			proxytest.WantStatus(t, resp, 200)
			if x := g.Next(t); x.Crawler != "default" {
				t.Errorf("crawler %s", x.Crawler)
			}
		}
	}
	text := said.String()
	if n := strings.Count(text, "a client's login is wrong"); n != 1 || !strings.Contains(text, "client=127.0.0.1") {
		t.Errorf("logged %d times:\n%s", n, text)
	}
	for _, secret := range []string{"a bad guess", proxytest.Basic("team", "a bad guess")[6:]} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
}

// A new password is in force from the next request on, also in open tunnels.
func TestNewPassword(t *testing.T) {
	var config policy.Config
	g := proxytest.Start(t, proxytest.Options{Engine: func(c *policy.Config) { proxytest.Team(true)(c); config = *c }})
	client := g.ClientAs(t, true, "team", proxytest.NewsPassword)
	for _, origin := range []string{g.HTTP, g.HTTPS} {
		resp, _ := proxytest.Send(t, client, http.MethodGet, origin+"/page", nil)
		proxytest.WantStatus(t, resp, 200)
	}
	config.Crawlers.Known = []*policy.Crawler{{Name: "news", Login: proxytest.LoginFor("team", proxytest.LastPassword), Mode: policy.Enforce, DenyStatus: 403}}
	s := g.Proxy.Settings
	s.Engine = s.Engine.Reconfigured(config)
	g.Proxy.Use(s)
	for origin, status := range map[string]int{g.HTTP: 407, g.HTTPS: 403} {
		resp, _ := proxytest.Send(t, client, http.MethodGet, origin+"/page", nil)
		proxytest.WantStatus(t, resp, status)
	}
}

// The log has the user name if a crawler has it. Another one may be a password in the wrong
// place. The log also says whether the client is refused.
func TestWrongLoginIsNamed(t *testing.T) {
	for _, c := range []struct {
		user   string
		refuse bool
		want   string
	}{
		{"team", true, "a wrong login is refused\" user=team client=127.0.0.1"},
		{"hunter2", true, "a wrong login is refused\" user=\"(none that a crawler has)\" client=127.0.0.1 "},
		{"team", false, "is ignored\" user=team client=127.0.0.1"},
	} {
		var said gatetest.Output
		g := proxytest.Start(t, proxytest.Options{Engine: proxytest.Team(c.refuse), Proxy: func(o *proxy.Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) }})
		proxytest.Send(t, g.ClientAs(t, false, c.user, "a bad guess"), http.MethodGet, g.HTTP+"/page", nil)
		if text := said.String(); !strings.Contains(text, c.want) || strings.Contains(text, "hunter2") {
			t.Errorf("%+v: logged %s", c, text)
		}
	}
}

// The login reaches no origin, also not by a passthrough tunnel or a WebSocket, and is in no
// refusal, log or record.
func TestLoginStaysHere(t *testing.T) {
	var said gatetest.Output
	var got gatetest.Output
	raw := gatetest.StartLineOrigin(t, func(_ int, conn net.Conn) {
		r := bufio.NewReader(io.TeeReader(conn, &got))
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if req.URL.Path == "/robots.txt" {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 34\r\nConnection: close\r\n\r\nUser-agent: *\nDisallow: /private/\r\n")
			return
		}
		if req.Header.Get("Upgrade") != "" {
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			io.Copy(io.Discard, r)
			return
		}
		io.Copy(io.Discard, req.Body)
		io.WriteString(conn, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"evil\"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	})
	var passthrough atomic.Bool
	engine := func(c *policy.Config) {
		proxytest.Team(true)(c)
		// The tunnel is allowed although its robots.txt is unreachable.
		c.Overrides = []policy.Override{{Hosts: []glob.Glob{glob.Text("*")}, Action: policy.Allow, Reason: "a test"}}
	}
	g := proxytest.Start(t, proxytest.Options{Engine: engine, Proxy: func(o *proxy.Options) {
		o.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Settings.Passthrough = func(string) bool { return passthrough.Load() }
	}})
	origin := raw.Host
	auth := "Proxy-Authorization: " + proxytest.Basic("team", proxytest.NewsPassword) + "\r\n"
	var answers strings.Builder
	for _, request := range []string{
		"GET http://" + origin + "/page HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"GET http://" + origin + "/page HTTP/1.1\r\nHost: x\r\nProxy_Authorization: " + proxytest.Basic("team", proxytest.NewsPassword) + "\r\n" + auth + "\r\n",
		"GET http://" + origin + "/private/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"GET http://" + origin + "/ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade, proxy-authorization\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n" + auth + "\r\n",
		"POST http://" + origin + "/page HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nTrailer: Proxy-Authorization\r\nTransfer-Encoding: chunked\r\n" + auth + "\r\n1\r\nx\r\n0\r\n" + auth + "\r\n",
		"TRACE http://" + origin + "/page HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"GET http://" + origin + "/a%zz HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"GET / HTTP/1.1\r\nHost: " + g.Addr + "\r\n" + auth + "\r\n",
		"GET http://" + origin + "/page HTTP/1.1\r\nHost: x\r\n" + auth + "Broken header\r\n\r\n",
	} {
		conn := g.Dial()
		io.WriteString(conn, request)
		resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &answers)), nil)
		if err != nil {
			t.Errorf("%q: %v", request, err)
		} else if resp.StatusCode != http.StatusSwitchingProtocols {
			io.Copy(io.Discard, resp.Body)
		}
		if resp != nil && resp.Header.Get("Proxy-Authenticate") != "" {
			t.Errorf("%q: an origin asks for the login: %v", request, resp.Header)
		}
		conn.Close()
	}
	passthrough.Store(true)
	conn, resp := g.ConnectTo(t, origin, strings.TrimSpace(auth))
	proxytest.WantStatus(t, resp, 200)
	io.WriteString(conn, "GET /inside HTTP/1.1\r\nHost: x\r\n\r\n")
	io.Copy(&answers, conn)
	_, resp = g.ConnectTo(t, origin)
	proxytest.WantStatus(t, resp, 407)

	proxytest.Eventually(t, "the origin has had its requests", func() bool { return strings.Contains(got.String(), "GET /inside") })
	var records strings.Builder
	for _, x := range g.Records() {
		fmt.Fprintf(&records, "%+v", *x)
	}
	for what, text := range map[string]string{"origin": got.String(), "log": said.String(), "answers": answers.String(), "records": records.String()} {
		for _, secret := range []string{proxytest.NewsPassword, proxytest.Basic("team", proxytest.NewsPassword)[6:], string(proxytest.Hashes()[proxytest.NewsPassword])} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q is in\n%s", what, secret, text)
			}
		}
	}
	if arrived := got.String(); strings.Contains(strings.ToLower(arrived), "auth") || strings.Count(arrived, " HTTP/1.1\r\n") != 6 {
		t.Errorf("the origin received\n%s", arrived)
	}
}

// A parent proxy gets the gate's own login, never a client's.
func TestParentSeesNoLogin(t *testing.T) {
	p := proxytest.StartParent(t, "http")
	g := proxytest.Start(t, proxytest.Options{Parent: p, Engine: proxytest.Team(true), Egress: func(e *proxy.Egress) { e.AllowPrivate = nil }, Proxy: func(o *proxy.Options) {
		o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
	}})
	client := g.ClientAs(t, true, "team", proxytest.NewsPassword)
	for _, url := range []string{"http://away.example.com/", "https://away.example.com/"} {
		resp, _ := proxytest.Send(t, client, http.MethodGet, url, nil)
		proxytest.WantStatus(t, resp, 200)
	}
	_, resp := g.ConnectTo(t, "unseen.example.com:443", "Proxy-Authorization: "+proxytest.Basic("team", proxytest.NewsPassword))
	proxytest.WantStatus(t, resp, 200)
	calls := p.Calls()
	if len(calls) < 4 { // in clear, and by CONNECT for both ways
		t.Errorf("the parent received %q", p.Asked())
	}
	for _, c := range calls {
		if c.Login != "gate:s3cret" || len(c.Header["Proxy-Authorization"]) != 1 {
			t.Errorf("%s: %q has %q", c.Line, c.Header["Proxy-Authorization"], c.Login)
		}
	}
}
