package proxytest

import (
	"encoding/base64"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"robotsgate/proxy/internal/client"
)

// A Parent is a proxy between a gate and its origins. It leads every destination to the
// origins, whatever its name, and keeps the requests.
type Parent struct {
	URL   *url.URL
	Close func()
	Says  string // the answer to all requests, if not empty; LOGIN stands for the login that was sent

	mu      sync.Mutex
	origins map[string]string // by scheme
	calls   []ParentCall
	refuse  int // the status of the answer to all requests; 0: they are served
}

// A ParentCall is one request to a parent.
type ParentCall struct {
	Line   string // "CONNECT example.com:443", "GET http://example.com/"
	Login  string
	Header http.Header // nil in SOCKS
}

// StartParent starts a proxy of the scheme http, https or socks5 that wants
// credentials.
func StartParent(t *testing.T, scheme string) *Parent {
	t.Helper()
	p := &Parent{}
	if scheme == "socks5" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				go p.socks(conn)
			}
		}()
		p.Close = func() { l.Close() }
		p.URL = &url.URL{Scheme: scheme, Host: l.Addr().String()}
	} else {
		s := httptest.NewUnstartedServer(p)
		if scheme == "https" {
			s.StartTLS()
		} else {
			s.Start()
		}
		p.Close = s.Close
		p.URL, _ = url.Parse(s.URL)
	}
	p.URL.User = url.UserPassword("gate", "s3cret")
	t.Cleanup(p.Close)
	return p
}

// LeadTo names the addresses of the origins.
func (p *Parent) LeadTo(plain, secure string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.origins = map[string]string{"http": plain, "https": secure}
}

// note takes a request down and returns where the destination is to be found.
func (p *Parent) note(request, auth string, h http.Header, scheme string) (address string, refuse int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, ParentCall{request, auth, h})
	return p.origins[scheme], p.refuse
}

// Refuses makes the parent answer all requests with a status; 0: serve them.
func (p *Parent) Refuses(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = status
}

// Calls returns the requests that the parent has received.
func (p *Parent) Calls() []ParentCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Asked returns the lines of the requests that the parent has received.
func (p *Parent) Asked() (lines []string) {
	for _, c := range p.Calls() {
		lines = append(lines, c.Line)
	}
	return lines
}

// ServeHTTP serves a parent of the scheme http or https.
func (p *Parent) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	_, encoded, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	auth, _ := base64.StdEncoding.DecodeString(encoded)
	scheme := "http"
	if r.Method == http.MethodConnect {
		scheme = "https"
	}
	address, refuse := p.note(r.Method+" "+r.RequestURI, string(auth), r.Header.Clone(), scheme)
	if p.Says != "" {
		if conn, _, err := http.NewResponseController(rw).Hijack(); err == nil {
			login := r.Header.Get("Proxy-Authorization") + " " + string(auth)
			io.WriteString(conn, strings.ReplaceAll(p.Says, "LOGIN", login))
			conn.Close()
		}
		return
	}
	if refuse != 0 {
		http.Error(rw, "refused", refuse)
		return
	}
	if r.Method == http.MethodConnect {
		origin, err := net.Dial("tcp", address)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadGateway)
			return
		}
		conn, buf, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			origin.Close()
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		splice(conn, buf, origin)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.Host = "", address
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	maps.Copy(rw.Header(), resp.Header)
	rw.WriteHeader(resp.StatusCode)
	io.Copy(rw, resp.Body)
}

func splice(gate net.Conn, from io.Reader, origin net.Conn) {
	go func() {
		io.Copy(origin, from)
		client.CloseWrite(origin)
	}()
	io.Copy(gate, origin)
	gate.Close()
	origin.Close()
}

// socks speaks as much of RFC 1928 and 1929 as the gate needs.
func (p *Parent) socks(conn net.Conn) {
	defer conn.Close()
	client.ReadSocksGreeting(conn)
	conn.Write(client.SocksChoice(client.LoginMethod))
	user, password, _ := client.ReadSocksLogin(conn)
	login := user + ":" + password
	if p.Says != "" {
		io.WriteString(conn, strings.ReplaceAll(p.Says, "LOGIN", login))
		return
	}
	conn.Write(client.SocksLoginReply(true))
	to, _, _, err := client.ReadSocksRequest(conn)
	if err != nil {
		return
	}
	scheme := "http"
	if to.Port == 443 {
		scheme = "https"
	}
	address, refuse := p.note("CONNECT "+net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))), login, nil, scheme)
	if refuse != 0 {
		conn.Write(client.SocksReply(client.SocksNotAllowed))
		return
	}
	origin, err := net.Dial("tcp", address)
	if err != nil {
		conn.Write(client.SocksReply(client.SocksFailed))
		return
	}
	conn.Write(client.SocksReply(client.SocksSucceeded))
	splice(conn, conn, origin)
}
