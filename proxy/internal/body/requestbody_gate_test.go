package body_test

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"robotsgate/internal/ca"
	"robotsgate/internal/gatetest"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A bodyIgnorer is an origin that never reads a body, so that it takes a body for the next request, as Python's
// http.server does. After "Connection: close" (RFC 9112, 9.6) it does not read on, but leaves the connection open.
type bodyIgnorer struct {
	mu      sync.Mutex
	arrived []arrival
}

// An arrival is a request that an origin has received.
type arrival struct {
	conn         int // the number of its connection
	method, path string
	closes       bool // it has "Connection: close"
}

func (o *bodyIgnorer) serve(n int, conn net.Conn) {
	reader := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if r.URL.Path == "/robots.txt" {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\nUser-agent: *\nDisallow: /private/\n")
			continue
		}
		o.mu.Lock()
		o.arrived = append(o.arrived, arrival{n, r.Method, r.URL.Path, r.Close})
		o.mu.Unlock()
		status, _ := strings.CutPrefix(r.URL.Path, "/public/")
		fmt.Fprintf(conn, "HTTP/1.1 %s X\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", status)
		if r.Close {
			io.Copy(io.Discard, conn)
			return
		}
	}
}

// take returns the requests that have arrived since the last call.
func (o *bodyIgnorer) take() []arrival {
	o.mu.Lock()
	defer o.mu.Unlock()
	arrived := o.arrived
	o.arrived = nil
	return arrived
}

// TestBodyIsNoRequest: a request with a body tells the origin to read no further request, and the gate sends none on
// that connection, however it reaches the origin.
func TestBodyIsNoRequest(t *testing.T) {
	t.Parallel() // it waits most of the time
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := authority.Leaf("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []struct {
		name, parent string
		configure    func(*proxy.Egress)
	}{
		{name: "direct"},
		{name: "one connection", configure: func(e *proxy.Egress) { e.MaxConnsPerHost = 1 }},
		{name: "http parent", parent: "http"},
		{name: "http parent, one connection", parent: "http", configure: func(e *proxy.Egress) { e.MaxConnsPerHost = 1 }},
		{name: "https parent", parent: "https"},
		{name: "socks5 parent", parent: "socks5"},
	} {
		t.Run(way.name, func(t *testing.T) {
			o := proxytest.Options{Egress: func(e *proxy.Egress) {
				e.Roots.AddCert(authority.Certificate())
				if way.configure != nil {
					way.configure(e)
				}
			}}
			if way.parent != "" {
				o.Parent = proxytest.StartParent(t, way.parent)
			}
			g := proxytest.Start(t, o)
			for _, scheme := range []string{"http", "https"} {
				t.Run(scheme, func(t *testing.T) {
					ignorer := &bodyIgnorer{}
					origin := gatetest.StartLineOrigin(t, func(n int, conn net.Conn) {
						if scheme == "https" {
							conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*leaf}})
						}
						ignorer.serve(n, conn)
					})
					if o.Parent != nil {
						o.Parent.LeadTo(origin.Host, origin.Host)
					}
					sendBodies(t, g.ClientVia("http", g.Addr, false), scheme+"://"+origin.Host, ignorer)
				})
			}
		})
	}
}

const smuggled = "GET /private/x HTTP/1.1\r\nHost: a\r\n\r\n"

// sendBodies sends each request with a body between two without one.
func sendBodies(t *testing.T, client *http.Client, origin string, ignorer *bodyIgnorer) {
	for _, r := range []struct {
		method, path, body string
		chunked            bool
		fields             []string
	}{
		{method: "GET"},
		{method: "GET", chunked: true},
		{method: "HEAD"},
		{method: "POST"},
		{method: "POST", chunked: true},
		{method: "DELETE"},
		{method: "REPORT"},
		{method: "GET", path: "/public/304"},
		{method: "POST", path: "/public/417", fields: []string{"Expect", "100-continue"}},
		// The response comes before the end of the body.
		{method: "POST", path: "/public/413", body: strings.Repeat(smuggled, 30_000)},
		{method: "PUT", path: "/public/413", body: strings.Repeat(smuggled, 30_000), chunked: true},
	} {
		path := cmp.Or(r.path, "/public/200")
		var body io.Reader = strings.NewReader(cmp.Or(r.body, smuggled))
		if r.chunked {
			body = struct{ io.Reader }{body} // of unknown length
		}
		proxytest.Send(t, client, http.MethodGet, origin+"/public/200", nil)
		resp, _ := proxytest.Send(t, client, r.method, origin+path, body, r.fields...)
		if want, _ := strings.CutPrefix(path, "/public/"); !strings.HasPrefix(resp.Status, want) {
			t.Errorf("%s %s: got %s", r.method, path, resp.Status)
		}
		proxytest.Send(t, client, http.MethodGet, origin+"/public/200", nil)
		got := ignorer.take()
		if len(got) != 3 || got[2].conn == got[1].conn {
			t.Errorf("%s %s: the origin received %d requests: %v", r.method, path, len(got), got[:min(len(got), 5)])
			continue
		}
		for i := range got {
			got[i].conn = 0
		}
		plain := arrival{0, "GET", "/public/200", false}
		if want := []arrival{plain, {0, r.method, path, true}, plain}; !slices.Equal(got, want) {
			t.Errorf("%s %s: the origin received %v, want %v", r.method, path, got, want)
		}
	}
}
