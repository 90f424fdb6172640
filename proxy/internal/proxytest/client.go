package proxytest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Client returns a client behind the gate. It speaks HTTP/2 inside TLS.
func (g *Gate) Client() *http.Client { return g.ClientVia("http", g.Addr, true) }

// ClientVia returns a client whose proxy is the gate, reached by this scheme
// and address.
func (g *Gate) ClientVia(scheme, addr string, http2 bool) *http.Client {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetHTTP2(http2)
	tr := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: scheme, Host: addr}),
		TLSClientConfig:    &tls.Config{RootCAs: g.Roots},
		Protocols:          &p,
		DisableCompression: true,
	}
	g.T.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Get fetches a URL as ExampleBot and returns the response with its body read.
func (g *Gate) Get(url string, headers ...string) (*http.Response, string) {
	g.T.Helper()
	return g.Do(http.MethodGet, url, nil, headers...)
}

// Do sends a request as ExampleBot and returns the response with its body read.
func (g *Gate) Do(method, url string, body io.Reader, headers ...string) (*http.Response, string) {
	g.T.Helper()
	return Send(g.T, g.Client(), method, url, body, headers...)
}

// Send makes a request as ExampleBot and returns the response with its body read.
func Send(t *testing.T, client *http.Client, method, url string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp, string(b)
}

// A Way is how requests reach the gate: in clear, or inside a tunnel in either
// version of HTTP.
type Way struct {
	Name   string
	Origin string
	Client *http.Client
}

// Ways runs a test for each way: requests must be treated alike on all of them.
func (g *Gate) Ways(t *testing.T, f func(t *testing.T, v Way)) {
	t.Helper()
	for _, v := range []Way{
		{"http", g.HTTP, g.ClientVia("http", g.Addr, false)},
		{"https HTTP/1.1", g.HTTPS, g.ClientVia("http", g.Addr, false)},
		{"https HTTP/2", g.HTTPS, g.ClientVia("http", g.Addr, true)},
	} {
		t.Run(v.Name, func(t *testing.T) {
			f(t, v)
			v.Client.CloseIdleConnections()
		})
	}
}

// Get fetches a path of the origin as ExampleBot and returns the response with its body read.
func (v Way) Get(t *testing.T, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	return Send(t, v.Client, http.MethodGet, v.Origin+path, nil, headers...)
}

// Raw sends bytes to the gate and returns its answer, as ReadAnswer does.
func (g *Gate) Raw(request string) string {
	g.T.Helper()
	conn := g.Dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(Patience))
	io.WriteString(conn, request)
	return ReadAnswer(g.T, conn, request)
}

// ReadAnswer reads the answer to a request: one response, or all that comes where the connection ends behind it.
func ReadAnswer(t *testing.T, conn net.Conn, request string) string {
	t.Helper()
	var answer bytes.Buffer
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &answer)), &http.Request{Method: method})
	opened := err == nil && method == http.MethodConnect && resp.StatusCode == http.StatusOK // then a tunnel follows
	if err == nil && !opened {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if opened || err == nil && !resp.Close {
		return answer.String()
	}
	io.Copy(&answer, conn)
	if answer.Len() == 0 {
		t.Fatalf("%q: no answer: %v", request, err)
	}
	return answer.String()
}

// Dial connects to the gate.
func (g *Gate) Dial() net.Conn {
	g.T.Helper()
	conn, err := net.Dial("tcp", g.Addr)
	if err != nil {
		g.T.Fatal(err)
	}
	return conn
}

// Tunnel opens a CONNECT to an origin and returns the connection.
func (g *Gate) Tunnel(target string) net.Conn {
	g.T.Helper()
	conn, resp := g.ConnectTo(g.T, target)
	conn.SetDeadline(time.Time{})
	if resp.StatusCode != 200 {
		g.T.Fatalf("CONNECT %s: %v", target, resp)
	}
	return conn
}

// ReadHead reads a response's head and not a byte more.
func ReadHead(conn net.Conn) (*http.Response, error) {
	return http.ReadResponse(bufio.NewReaderSize(iotest.OneByteReader(conn), 16), &http.Request{Method: http.MethodConnect})
}

// Secure speaks HTTP/1.1 over TLS inside a tunnel: one request, one answer.
func (g *Gate) Secure(target, sni, request string) string {
	g.T.Helper()
	conn := tls.Client(g.Tunnel(target), &tls.Config{RootCAs: g.Roots, ServerName: sni})
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(Patience))
	if _, err := io.WriteString(conn, request); err != nil {
		g.T.Fatal(err)
	}
	return ReadAnswer(g.T, conn, request)
}

// HTTP2 speaks HTTP/2 over TLS inside a tunnel.
func (g *Gate) HTTP2(t *testing.T, target, sni string) *http.ClientConn {
	t.Helper()
	var p http.Protocols
	p.SetHTTP2(true)
	tr := &http.Transport{Protocols: &p, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn := tls.Client(g.Tunnel(target), &tls.Config{RootCAs: g.Roots, ServerName: sni, NextProtos: []string{"h2"}})
		return conn, conn.HandshakeContext(ctx)
	}}
	cc, err := tr.NewClientConn(t.Context(), "https", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// WriteHead writes a HEADERS frame with fields, which are names and values in turn.
func WriteHead(f *http2.Framer, stream uint32, last bool, fields ...string) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := 0; i+1 < len(fields); i += 2 {
		e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: last})
}

// ClientAs returns a client with a login in its proxy URL.
func (g *Gate) ClientAs(t *testing.T, http2 bool, user, password string) *http.Client {
	c := g.ClientVia("http", g.Addr, http2)
	if user != "" {
		c.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: g.Addr, User: url.UserPassword(user, password)})
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// AnswerTo reads the answer to a request with a method from a connection that stays open, and its body.
func AnswerTo(t *testing.T, r *bufio.Reader, method string) (*http.Response, string) {
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

// ConnectOn sends CONNECT, with lines of its header, over a connection that stays open, and reads the answer.
func ConnectOn(t *testing.T, conn net.Conn, r *bufio.Reader, target string, headers ...string) (*http.Response, string) {
	t.Helper()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n%s\r\n", target, strings.Join(append(headers, ""), "\r\n"))
	return AnswerTo(t, r, http.MethodConnect)
}

// ConnectTo sends CONNECT, with lines of its header, and returns the connection with the answer's head.
func (g *Gate) ConnectTo(t *testing.T, target string, headers ...string) (*net.TCPConn, *http.Response) {
	t.Helper()
	conn := g.Dial()
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(Patience))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n%s\r\n", target, strings.Join(append(headers, ""), "\r\n"))
	resp, err := ReadHead(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn), resp
}

// Frames opens an HTTP/2 connection in a tunnel and asks for a path on stream 1.
func (g *Gate) Frames(t *testing.T, path string, window uint32) (net.Conn, *http2.Framer) {
	conn := tls.Client(g.Tunnel(Host(g.HTTPS)), &tls.Config{RootCAs: g.Roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
	t.Cleanup(func() { conn.Close() })
	io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	f.WriteSettingsAck()
	WriteHead(f, 1, true, ":method", "GET", ":scheme", "https", ":authority", Host(g.HTTPS), ":path", path, "user-agent", "ExampleBot")
	return conn, f
}

// Origins runs a test for the origin in clear and for the one in TLS: requests must be treated alike.
func (g *Gate) Origins(t *testing.T, f func(t *testing.T, origin string)) {
	t.Helper()
	for _, origin := range []string{g.HTTP, g.HTTPS} {
		scheme, _, _ := strings.Cut(origin, ":")
		t.Run(scheme, func(t *testing.T) { f(t, origin) })
	}
}
