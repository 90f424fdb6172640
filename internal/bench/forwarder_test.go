//go:build unix

package bench

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elazarl/goproxy"
)

// spentPath is the path at which the forwarders report their use of resources.
const spentPath = "/bench-spent"

func writeSpent(w io.Writer) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	fmt.Fprintln(w, time.Duration(u.Utime.Nano()+u.Stime.Nano()).Seconds(), m.Mallocs, m.TotalAlloc)
}

// buffers are for copying bodies.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// A forwarder passes requests on and does nothing else. It is the limit for a proxy on
// net/http.
type forwarder struct {
	transport *http.Transport
	tunnels   *tunnels
}

func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConns: 4096, MaxIdleConnsPerHost: 256, DisableCompression: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		f.connect(w)
		return
	case r.URL.Host == "" && r.URL.Path == spentPath:
		writeSpent(w)
		return
	case r.URL.Host == "": // inside a tunnel
		r.URL.Scheme, r.URL.Host = "https", r.Host
	}
	out := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: r.Header, Body: http.NoBody}
	resp, err := f.transport.RoundTrip(out.WithContext(r.Context()))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	h := w.Header()
	maps.Copy(h, resp.Header)
	w.WriteHeader(resp.StatusCode)
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{resp.Body}, buf[:])
}

func (f *forwarder) connect(w http.ResponseWriter) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil || rw.Reader.Buffered() > 0 {
		conn.Close()
		return
	}
	f.tunnels.conns <- conn
}

// tunnels is a listener for the connections of CONNECT requests.
type tunnels struct {
	conns chan net.Conn
	addr  net.Addr
}

func (t *tunnels) Accept() (net.Conn, error) { return <-t.conns, nil }
func (t *tunnels) Close() error              { return nil }
func (t *tunnels) Addr() net.Addr            { return t.addr }

// serveForwarder prints its address and serves. It uses the certificate in file in
// every tunnel.
func serveForwarder(file string) error {
	cert, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f := &forwarder{newTransport(), &tunnels{make(chan net.Conn), l.Addr()}}
	inner := &http.Server{Handler: f, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}}
	go inner.ServeTLS(f.tunnels, "", "")
	fmt.Println(l.Addr())
	return (&http.Server{Handler: f, ErrorLog: quiet}).Serve(l)
}

var quiet = log.New(io.Discard, "", 0)

// serveGoproxy serves goproxy with its own TLS interception. It prints its address.
func serveGoproxy(file string) error {
	cert, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p := goproxy.NewProxyHttpServer()
	p.Logger = quiet
	p.Tr = newTransport()
	p.NonproxyHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { writeSpent(w) })
	mitm := &goproxy.ConnectAction{Action: goproxy.ConnectMitm, TLSConfig: func(string, *goproxy.ProxyCtx) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{cert}}, nil
	}}
	p.OnRequest().HandleConnectFunc(func(host string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) { return mitm, host })
	fmt.Println(l.Addr())
	return (&http.Server{Handler: p, ErrorLog: quiet}).Serve(l)
}

// connectTo opens a tunnel through the proxy at addr.
func connectTo(addr, host string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n\r\n", host, host, agent); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(onlyHead{conn}, 1), nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return conn, nil
}

// onlyHead returns one byte at a time, so that no byte of the tunnel is read ahead.
type onlyHead struct{ net.Conn }

func (o onlyHead) Read(p []byte) (int, error) { return o.Conn.Read(p[:1]) }

func hostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(u.Host, "/")
}
