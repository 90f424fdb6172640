package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy/internal/auth"
)

// The passwords of these tests.
const (
	newsPassword = "paper-boy 1"
	shopPassword = "shop-keeper 2"
	lastPassword = "latecomer 3"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

var hashes = sync.OnceValue(func() map[string][]byte {
	m := map[string][]byte{}
	for _, password := range []string{newsPassword, shopPassword, lastPassword} {
		m[password], _ = bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	}
	return m
})

func loginFor(user, password string) policy.Login {
	return policy.Login{User: user, Hash: string(hashes()[password])}
}

// team is a configuration with three crawlers that have logins. news and shop share a user
// name; shop is also identified by its User-Agent, and elsewhere by its address.
func team(refuse bool) func(*policy.Config) {
	return func(c *policy.Config) {
		c.Crawlers.Known = []*policy.Crawler{
			{Name: "news", Login: loginFor("team", newsPassword), Mode: policy.Enforce, DenyStatus: 403},
			{Name: "shop", Login: loginFor("team", shopPassword), UserAgents: []glob.Glob{glob.Text("*bot*")}, Mode: policy.Enforce, DenyStatus: 403},
			{Name: "elsewhere", Login: loginFor("last", lastPassword), Sources: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Mode: policy.Enforce, DenyStatus: 403},
		}
		c.Crawlers.RefuseUnknown = refuse
	}
}

// proxied returns a client with a login in its proxy URL.
func (w *world) proxied(t *testing.T, http2 bool, user, password string) *http.Client {
	c := w.clientVia("http", w.addr, http2)
	if user != "" {
		c.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr, User: url.UserPassword(user, password)})
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// A client needs only a login in its proxy URL, for http and https, and the login is compared
// once for all its requests.
func TestLogin(t *testing.T) {
	w := newWorld(t, options{engine: team(true)})
	for _, v := range []struct {
		name, origin string
		http2        bool
	}{{"http", w.http, false}, {"https HTTP/1.1", w.https, false}, {"https HTTP/2", w.https, true}} {
		for _, c := range []struct{ password, crawler string }{{newsPassword, "news"}, {shopPassword, "shop"}} {
			client := w.proxied(t, v.http2, "team", c.password)
			for range 3 {
				resp, _ := send(t, client, http.MethodGet, v.origin+"/page", nil)
				wantStatus(t, resp, 200)
				if x := w.next(t); x.Crawler != c.crawler {
					t.Errorf("%s: the crawler is %s, want %s", v.name, x.Crawler, c.crawler)
				}
				for name, values := range w.last().Header {
					if strings.Contains(strings.ToLower(name), "proxy") || strings.Contains(fmt.Sprint(values), basic("team", c.password)[6:]) {
						t.Errorf("%s: the origin receives %s: %s", v.name, name, values)
					}
				}
			}
		}
	}
	// The login of shop is compared with the hash of news first.
	if right, wrong := w.gate.LoginComparisons(); right != 2 || wrong != 1 {
		t.Errorf("%d right and %d wrong comparisons, want 2 and 1", right, wrong)
	}
}

// askOn sends one request in clear over a connection that stays open.
func askOn(t *testing.T, conn net.Conn, r *bufio.Reader, uri string, headers ...string) (*http.Response, string) {
	t.Helper()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: ExampleBot/1.0\r\n%s\r\n", uri, lines(headers))
	return answerTo(t, r, http.MethodGet)
}

func connectOn(t *testing.T, conn net.Conn, r *bufio.Reader, target string, headers ...string) (*http.Response, string) {
	t.Helper()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n%s\r\n", target, lines(headers))
	return answerTo(t, r, http.MethodConnect)
}

func answerTo(t *testing.T, r *bufio.Reader, method string) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodConnect && resp.StatusCode == 200 {
		return resp, ""
	}
	body := resp.Body
	if method == http.MethodConnect { // ReadResponse takes it for a tunnel
		body = io.NopCloser(io.LimitReader(r, resp.ContentLength))
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func lines(headers []string) string {
	if len(headers) == 0 {
		return ""
	}
	return strings.Join(headers, "\r\n") + "\r\n"
}

const authenticate = `Basic realm="robotsgate", charset="UTF-8"`

// A request without the required login gets a 407, on a connection that stays open. Each
// request on a connection is identified by its own login.
func TestLoginRequired(t *testing.T) {
	w := newWorld(t, options{engine: team(true)})
	conn := w.dial()
	defer conn.Close()
	r := bufio.NewReader(conn)
	auth := func(user, password string) string { return "Proxy-Authorization: " + basic(user, password) }
	for _, c := range []struct {
		name    string
		headers []string
		status  int
		crawler string
	}{
		{"none", nil, 407, ""},
		{"wrong", []string{auth("team", "guess")}, 407, ""},
		{"right", []string{auth("team", newsPassword)}, 200, "news"},
		{"none, after another's", nil, 407, ""},
		{"another", []string{auth("team", shopPassword)}, 200, "shop"},
		{"empty, as wget2 sends it", []string{auth("", "")}, 407, ""},
		{"unknown user", []string{auth("nobody", newsPassword)}, 407, ""},
		{"from the wrong address", []string{auth("last", lastPassword)}, 407, ""},
		{"doubled", []string{auth("team", newsPassword), auth("team", newsPassword)}, 407, ""},
		{"with another in front", []string{auth("team", "guess"), auth("team", newsPassword)}, 407, ""},
		{"two in one", []string{auth("team", newsPassword) + ", " + basic("team", shopPassword)}, 407, ""},
		{"under another name", []string{"Proxy_Authorization: " + basic("team", newsPassword)}, 407, ""},
		{"for the origin", []string{"Authorization: " + basic("team", newsPassword)}, 407, ""},
		{"named by Connection", []string{auth("team", newsPassword), "Connection: Proxy-Authorization"}, 200, "news"},
		{"another scheme", []string{"Proxy-Authorization: Bearer x"}, 407, ""},
		{"a hash", []string{auth("team", string(hashes()[newsPassword]))}, 407, ""},
	} {
		resp, body := askOn(t, conn, r, w.http+"/page", c.headers...)
		x := w.next(t)
		if resp.StatusCode != c.status || x.Crawler != c.crawler || resp.Close {
			t.Errorf("%s: status %d, crawler %q, close %v, want %d, %q", c.name, resp.StatusCode, x.Crawler, resp.Close, c.status, c.crawler)
		}
		if c.status == 407 {
			wantHeader(t, resp, "Proxy-Authenticate", authenticate)
			wantHeader(t, resp, proxyStatus, "robotsgate;error=http_request_denied")
			if x.Decision != nil || resp.Header.Get(headerDecision) != "" || resp.Header.Get(headerID) == "" {
				t.Errorf("%s: decision %v, headers %v", c.name, x.Decision, resp.Header)
			}
			if !strings.Contains(body, "http://USER:PASSWORD@HOST:PORT") && c.headers == nil {
				t.Errorf("%s: the refusal does not say what to do:\n%s", c.name, body)
			}
			if empty := strings.HasPrefix(c.name, "empty"); strings.Contains(body, "--http-proxy-user") != empty || empty && strings.Contains(body, "http://USER:PASSWORD") {
				t.Errorf("%s: wrong advice on an empty login:\n%s", c.name, body)
			}
		}
	}
	wantArrived(t, w, "GET /page", "GET /page", "GET /page")
	for _, r := range w.seen {
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
	w := newWorld(t, options{engine: team(true)})
	auth := "Proxy-Authorization: " + basic("team", newsPassword)
	conn := w.dial()
	defer conn.Close()
	r := bufio.NewReader(conn)
	for _, headers := range [][]string{nil, {"Proxy-Authorization: " + basic("team", "guess")}, {auth, auth}} {
		resp, _ := connectOn(t, conn, r, host(w.https), headers...)
		wantStatus(t, resp, 407)
		wantHeader(t, resp, "Proxy-Authenticate", authenticate)
		if x := w.next(t); x.Method != http.MethodConnect || x.Crawler != "" || x.Status != 407 {
			t.Errorf("the record: %s, crawler %q, %d", x.Method, x.Crawler, x.Status)
		}
	}
	// The same connection, used in clear with a login, then for a tunnel with another.
	resp, _ := askOn(t, conn, r, w.http+"/clear", auth)
	wantStatus(t, resp, 200)
	resp, _ = connectOn(t, conn, r, host(w.https))
	wantStatus(t, resp, 407)
	resp, _ = connectOn(t, conn, r, host(w.https), "Proxy-Authorization: "+basic("team", shopPassword))
	wantStatus(t, resp, 200)
	inside := tls.Client(conn, &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1", NextProtos: []string{"http/1.1"}})
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
		fmt.Fprintf(inside, "GET /inside HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n%s\r\n", host(w.https), c.agent, c.header)
		resp, body := answerTo(t, ir, http.MethodGet)
		if resp.StatusCode != c.status || resp.Header.Get("Proxy-Authenticate") != "" {
			t.Errorf("%s %s: %d, %v, want %d", c.agent, c.header, resp.StatusCode, resp.Header, c.status)
		}
		if c.status == 403 && !strings.Contains(body, "unknown-client") {
			t.Errorf("%s: %s", c.agent, body)
		}
		if c.status == 200 && w.last().Header.Get("Proxy-Authorization") != "" {
			t.Error("the origin receives the login")
		}
	}
}

// If a crawler without a login may use the tunnel, CONNECT needs none. A request inside that
// matches no crawler is refused, also with a login of its own.
func TestTunnelOfUnknownClients(t *testing.T) {
	w := newWorld(t, options{engine: func(c *policy.Config) {
		team(true)(c)
		c.Crawlers.Known = append(c.Crawlers.Known, &policy.Crawler{Name: "open", UserAgents: []glob.Glob{glob.Text("Open*")}, Mode: policy.Enforce, DenyStatus: 403})
	}})
	for _, http2 := range []bool{false, true} {
		client := w.clientVia("http", w.addr, http2)
		for _, c := range []struct {
			agent, crawler string
			status         int
		}{{"OpenReader/1", "open", 200}, {"curl/8", "", 403}} {
			req, _ := http.NewRequest(http.MethodGet, w.https+"/page", nil)
			req.Header.Set("User-Agent", c.agent)
			req.Header.Set("Proxy-Authorization", basic("team", newsPassword))
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			wantStatus(t, resp, c.status)
			if x := w.next(t); x.Crawler != c.crawler {
				t.Errorf("%s: crawler %q", c.agent, x.Crawler)
			}
			if c.status == 200 && w.last().Header.Get("Proxy-Authorization") != "" {
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
	w := newWorld(t, options{engine: func(c *policy.Config) {
		team(true)(c)
		c.Crawlers.Known = c.Crawlers.Known[2:] // from elsewhere only
	}})
	resp, body := w.get(w.http + "/page")
	wantStatus(t, resp, 403)
	wantHeader(t, resp, "Proxy-Authenticate", "")
	wantHeader(t, resp, proxyStatus, `robotsgate;error=http_request_denied;details="unknown client"`)
	if !strings.Contains(body, "127.0.0.1") {
		t.Errorf("the refusal does not name the client:\n%s", body)
	}
	_, resp = w.connectTo(t, host(w.https), "Proxy-Authorization: "+basic("last", lastPassword)+"\r\n")
	wantStatus(t, resp, 403)
	if n := w.count(); n != 0 {
		t.Errorf("%d requests reached an origin", n)
	}
}

// If unknown clients may use the gate, a wrong login counts as none.
func TestWrongLoginOfPermittedClient(t *testing.T) {
	var said lockedBuffer
	w := newWorld(t, options{engine: team(false), gate: func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}})
	for range 3 {
		client := w.proxied(t, true, "team", "a bad guess")
		for _, origin := range []string{w.http, w.https} {
			resp, _ := send(t, client, http.MethodGet, origin+"/page", nil)
			wantStatus(t, resp, 200)
			if x := w.next(t); x.Crawler != "default" {
				t.Errorf("crawler %s", x.Crawler)
			}
		}
	}
	text := said.String()
	if n := strings.Count(text, "a client's login is wrong"); n != 1 || !strings.Contains(text, "client=127.0.0.1") {
		t.Errorf("logged %d times:\n%s", n, text)
	}
	for _, secret := range []string{"a bad guess", basic("team", "a bad guess")[6:]} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A new password is in force from the next request on, also in open tunnels.
func TestNewPassword(t *testing.T) {
	var config policy.Config
	w := newWorld(t, options{engine: func(c *policy.Config) { team(true)(c); config = *c }})
	client := w.proxied(t, true, "team", newsPassword)
	for _, origin := range []string{w.http, w.https} {
		resp, _ := send(t, client, http.MethodGet, origin+"/page", nil)
		wantStatus(t, resp, 200)
	}
	config.Crawlers.Known = []*policy.Crawler{{Name: "news", Login: loginFor("team", lastPassword), Mode: policy.Enforce, DenyStatus: 403}}
	s := *w.gate.settings.Load()
	s.Engine = s.Engine.Reconfigured(config)
	w.gate.Use(s)
	for origin, status := range map[string]int{w.http: 407, w.https: 403} {
		resp, _ := send(t, client, http.MethodGet, origin+"/page", nil)
		wantStatus(t, resp, status)
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
		{"team", true, "a wrong login is refused\" client=127.0.0.1 user=team "},
		{"hunter2", true, "a wrong login is refused\" client=127.0.0.1 user=\"(none that a crawler has)\" "},
		{"team", false, "is ignored\" client=127.0.0.1 user=team "},
	} {
		var said lockedBuffer
		w := newWorld(t, options{engine: team(c.refuse), gate: func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) }})
		send(t, w.proxied(t, false, c.user, "a bad guess"), http.MethodGet, w.http+"/page", nil)
		if text := said.String(); !strings.Contains(text, c.want) || strings.Contains(text, "hunter2") {
			t.Errorf("%+v: logged %s", c, text)
		}
	}
}

// A missing login is logged if one is required, at most once a minute, in clear, at CONNECT and
// inside a tunnel. It does not keep a wrong login out of the log.
func TestMissingLoginIsLogged(t *testing.T) {
	const missing = "a client needs a login, and sent none"
	ask := func(w *world, origin, user string) {
		t.Helper()
		if resp, err := w.proxied(t, false, user, "a bad guess").Get(origin + "/page"); err == nil { // CONNECT may be refused
			resp.Body.Close()
		}
	}
	byAgent := func(c *policy.Config) {
		team(true)(c)
		c.Crawlers.Known = append(c.Crawlers.Known, &policy.Crawler{Name: "open", UserAgents: []glob.Glob{glob.Text("Open*")}})
	}
	fromElsewhere := func(c *policy.Config) {
		team(true)(c)
		c.Crawlers.Known = c.Crawlers.Known[2:]
	}
	for name, c := range map[string]struct {
		engine func(*policy.Config)
		https  bool
		want   int
	}{
		"in clear":                 {team(true), false, 1},
		"at CONNECT":               {team(true), true, 1},
		"inside a tunnel":          {byAgent, true, 1},
		"no login is required":     {team(false), false, 0},
		"no login could be of use": {fromElsewhere, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var said lockedBuffer
			w := newWorld(t, options{engine: c.engine, gate: func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) }})
			origin := w.http
			if c.https {
				origin = w.https
			}
			for range 5 {
				ask(w, origin, "")
			}
			unknown := 0
			if name == "no login could be of use" {
				unknown = 1
			}
			if n := strings.Count(said.String(), "a client that matches no crawler is refused"); n != unknown {
				t.Errorf("%d lines about clients that match no crawler, want %d: %s", n, unknown, said.String())
			}
			if n := strings.Count(said.String(), missing+`" client=127.0.0.1 others_since_last=0`); n != c.want || strings.Count(said.String(), missing) != c.want {
				t.Errorf("logged %d times, want %d: %s", n, c.want, said.String())
			}
			ask(w, origin, "team")
			if text := said.String(); name == "in clear" && !strings.Contains(text, "a client with a wrong login is refused") {
				t.Errorf("the wrong login is not logged: %s", text)
			}
		})
	}
}

// While wrong passwords are compared, a client that has logged in before is not delayed.
func TestKnownLoginIsNotDelayed(t *testing.T) {
	slow, err := bcrypt.GenerateFromPassword([]byte(newsPassword), 10) // some 2 s under the race detector
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{engine: func(c *policy.Config) {
		team(true)(c)
		c.Crawlers.Known = []*policy.Crawler{{Name: "news", Login: policy.Login{User: "team", Hash: string(slow)}, Mode: policy.Enforce, DenyStatus: 403}}
	}})
	ask := func() {
		resp, _ := send(t, w.proxied(t, false, "team", newsPassword), http.MethodGet, w.http+"/page", nil)
		wantStatus(t, resp, 200)
	}
	ask()
	refused := make(chan Refusal, 1) // with a 503
	go func() {                      // the test world's channel of records is too short
		for x := range w.done {
			if x.Status == http.StatusServiceUnavailable {
				select {
				case refused <- x.Refused:
				default:
				}
			}
		}
	}()
	const flood = 400 // more than may wait
	busy := make(chan string, flood)
	for i := range flood {
		conn := w.dial()
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s/page HTTP/1.1\r\nHost: x\r\nProxy-Authorization: %s\r\n\r\n", w.http, basic("team", fmt.Sprint("guess ", i)))
		go func() {
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil && resp.StatusCode == http.StatusServiceUnavailable {
				busy <- resp.Header.Get("Retry-After")
			}
		}()
	}
	if got := receive(t, busy, "a 503"); got != "1" {
		t.Errorf("Retry-After of the flood: %q", got)
	}
	if got := receive(t, refused, "the record of a 503"); got != ByLimit {
		t.Errorf("the flood is refused by %q, want %q", got, ByLimit)
	}
	_, before := w.gate.LoginComparisons()
	ask()
	if _, after := w.gate.LoginComparisons(); after > before+1 {
		t.Errorf("a known login waited for %d comparisons", after-before)
	}
}

// In IPv6 all addresses of a /64 count as one for comparisons of passwords: if more of their logins wait than may of one
// address, one is refused.
func TestLoginsFromOneNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes while passwords are compared
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := clients{log: slog.New(slog.DiscardHandler), verifier: auth.NewVerifier()}
		login := loginFor("team", newsPassword)
		const flood = 400
		ended := make(chan error, flood)
		for n := range flood {
			from := sender{login: auth.New("team", fmt.Sprint("guess ", n))}
			from.Addr = netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", n))
			go func() {
				i := c.begin(ctx, from)
				i.proves(&login)
				ended <- i.err
			}()
		}
		for range flood {
			if errors.Is(<-ended, auth.ErrBusy) {
				return
			}
		}
		t.Error("none is refused")
	})
}

// A wrong password is compared once, however often a client sends it.
func TestWrongLoginIsComparedOnce(t *testing.T) {
	w := newWorld(t, options{engine: team(false)})
	client := w.proxied(t, true, "team", "a bad guess")
	for range 5 {
		for _, origin := range []string{w.http, w.https} {
			send(t, client, http.MethodGet, origin+"/page", nil)
		}
	}
	if right, wrong := w.gate.LoginComparisons(); right != 0 || wrong != 2 { // once for each crawler of that user name
		t.Errorf("%d right and %d wrong comparisons, want 0 and 2", right, wrong)
	}
}

// The login reaches no origin, also not by a passthrough tunnel or a WebSocket, and is in no
// refusal, log or record.
func TestLoginStaysHere(t *testing.T) {
	var said lockedBuffer
	var got lockedBuffer
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	go func() {
		for {
			conn, err := raw.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
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
			}()
		}
	}()
	var passthrough atomic.Bool
	engine := func(c *policy.Config) {
		team(true)(c)
		// The tunnel is allowed although its robots.txt is unreachable.
		c.Overrides = []policy.Override{{Hosts: []glob.Glob{glob.Text("*")}, Action: policy.Allow, Reason: "a test"}}
	}
	w := newWorld(t, options{engine: engine, gate: func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Settings.Passthrough = func(string) bool { return passthrough.Load() }
	}})
	origin := raw.Addr().String()
	auth := "Proxy-Authorization: " + basic("team", newsPassword) + "\r\n"
	var answers strings.Builder
	for _, request := range []string{
		"GET http://" + origin + "/page HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"GET http://" + origin + "/page HTTP/1.1\r\nHost: x\r\nProxy_Authorization: " + basic("team", newsPassword) + "\r\n" + auth + "\r\n",
		"GET http://" + origin + "/private/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"GET http://" + origin + "/ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade, proxy-authorization\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n" + auth + "\r\n",
		"POST http://" + origin + "/page HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nTrailer: Proxy-Authorization\r\nTransfer-Encoding: chunked\r\n" + auth + "\r\n1\r\nx\r\n0\r\n" + auth + "\r\n",
		"TRACE http://" + origin + "/page HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"GET http://" + origin + "/a%zz HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"GET / HTTP/1.1\r\nHost: " + w.addr + "\r\n" + auth + "\r\n",
		"GET http://" + origin + "/page HTTP/1.1\r\nHost: x\r\n" + auth + "Broken header\r\n\r\n",
	} {
		conn := w.dial()
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
	conn, resp := w.connectTo(t, origin, auth)
	wantStatus(t, resp, 200)
	io.WriteString(conn, "GET /inside HTTP/1.1\r\nHost: x\r\n\r\n")
	io.Copy(&answers, conn)
	_, resp = w.connectTo(t, origin)
	wantStatus(t, resp, 407)

	eventually(t, "the origin has had its requests", func() bool { return strings.Contains(got.String(), "GET /inside") })
	w.mu.Lock()
	var records strings.Builder
	for _, x := range w.exchanges {
		fmt.Fprintf(&records, "%+v", *x)
	}
	w.mu.Unlock()
	for what, text := range map[string]string{"origin": got.String(), "log": said.String(), "answers": answers.String(), "records": records.String()} {
		for _, secret := range []string{newsPassword, basic("team", newsPassword)[6:], string(hashes()[newsPassword])} {
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
	p := startParent(t, "http")
	w := newWorld(t, options{parent: p, engine: team(true), egress: func(e *Egress) { e.AllowPrivate = nil }, gate: func(o *Options) {
		o.Settings.Passthrough = func(host string) bool { return host == "unseen.example.com" }
	}})
	client := w.proxied(t, true, "team", newsPassword)
	for _, url := range []string{"http://away.example.com/", "https://away.example.com/"} {
		resp, _ := send(t, client, http.MethodGet, url, nil)
		wantStatus(t, resp, 200)
	}
	_, resp := w.connectTo(t, "unseen.example.com:443", "Proxy-Authorization: "+basic("team", newsPassword)+"\r\n")
	wantStatus(t, resp, 200)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.auth) < 4 { // in clear, and by CONNECT for both ways
		t.Errorf("the parent received %q", p.log)
	}
	for i, auth := range p.auth {
		if auth != "gate:s3cret" || len(p.headers[i]["Proxy-Authorization"]) != 1 {
			t.Errorf("%s: %q has %q", p.log[i], p.headers[i]["Proxy-Authorization"], auth)
		}
	}
}
