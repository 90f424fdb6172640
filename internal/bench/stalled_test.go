//go:build unix

package bench

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// BenchmarkStalled reports the peak resident memory of a gate with clients that ask for large bodies and
// do not read them, or send large bodies that the origin does not read. It must be within the default of limits.memory.
func BenchmarkStalled(b *testing.B) {
	o := newOrigins(b)
	program := buildGate(b)
	plain, http1, http2 := serveLarge(b, o.certificate), serveLarge(b, o.certificate, "http/1.1"), serveLarge(b, o.certificate, "h2")
	for _, c := range []struct {
		name    string
		conns   int
		streams int // of each connection; 0: HTTP/1.1
		method  string
		url     string
	}{
		{"http2-40x100", 40, 100, http.MethodGet, http2 + "/large"},
		{"http2-256x100", 256, 100, http.MethodGet, http2 + "/large"},
		{"http2-pages-256x100", 256, 100, http.MethodGet, http2 + "/page"},
		{"http2-uploads-256x100", 256, 100, http.MethodPost, http2 + "/upload"},
		{"http1-256", 256, 0, http.MethodGet, plain + "/large"},
		{"http1-2000", 2000, 0, http.MethodGet, plain + "/large"},
		{"http1-pages-2000", 2000, 0, http.MethodGet, plain + "/page"},
		{"tls-http1-256", 256, 0, http.MethodGet, http1 + "/large"},
		{"tls-http1-2000", 2000, 0, http.MethodGet, http1 + "/large"},
		{"tls-http1-to-http2-2000", 2000, 0, http.MethodGet, http2 + "/large"},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				g := serving(b, exec.Command(program, "serve", "-c", o.writeConfig(b, b.TempDir(), "")), "")
				closeAll := stall(b, g, c.conns, func() (net.Conn, error) {
					if c.streams == 0 {
						return stallHTTP1(g.addr, c.url)
					}
					return stallHTTP2(g.addr, c.method, c.url, c.streams)
				})
				b.ReportMetric(0, "ns/op")
				peak := g.status(b, "VmHWM") / (1 << 20)
				b.ReportMetric(peak, "peak-MiB")
				if peak > maxResident {
					b.Errorf("%.0f MiB are resident, more than %d", peak, maxResident)
				}
				closeAll()
				g.stop()
			}
		})
	}
}

// serveLarge starts an origin, with TLS if a protocol is given, and returns its URL.
func serveLarge(b *testing.B, certificate string, protocol ...string) string {
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		b.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(certificate, certificate)
	if err != nil {
		b.Fatal(err)
	}
	s := &http.Server{
		Handler: http.HandlerFunc(large), ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: protocol},
	}
	b.Cleanup(func() { s.Close() })
	if len(protocol) == 0 {
		go s.Serve(l)
		return "http://" + l.Addr().String()
	}
	go s.ServeTLS(l, "", "")
	return "https://" + l.Addr().String()
}

// large answers with 64 MiB. A page's head has no end; an upload is not read.
func large(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/robots.txt":
		return
	case "/upload":
		<-r.Context().Done()
		return
	case "/page":
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<head><script>")
	}
	block := bytes.Repeat([]byte("x"), 64<<10)
	for range 1024 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// stall opens connections and waits until the gate's memory has not grown for some seconds.
func stall(b *testing.B, g *gate, conns int, open func() (net.Conn, error)) (closeAll func()) {
	all, errs := make([]net.Conn, conns), make([]error, conns)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for j := i; j < conns; j += clients {
				all[j], errs[j] = open()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	last := 0.0
	for grown := time.Now(); time.Since(grown) < 4*time.Second; time.Sleep(200 * time.Millisecond) { // real time: the gate is another process
		if now := g.status(b, "VmHWM"); now > last+1<<20 {
			grown, last = time.Now(), now
		}
	}
	return func() {
		for _, c := range all {
			c.Close()
		}
	}
}

// stallHTTP1 asks for a URL over a connection with a small receive buffer, and reads nothing.
func stallHTTP1(proxy, url string) (net.Conn, error) {
	scheme, rest, _ := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	if scheme == "https" {
		conn, err := secureTo(proxy, host, "http/1.1")
		if err != nil {
			return nil, err
		}
		conn.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10)
		_, err = conn.Write(inside(host, "/"+path))
		return conn, err
	}
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		return nil, err
	}
	conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, err = conn.Write(same(url)(0))
	return conn, err
}

// A zeroWindow is an HTTP/2 connection that accepts no bytes of response bodies.
type zeroWindow struct {
	net.Conn
	frames *http2.Framer

	mu     sync.Mutex // guards writes to frames, conn and stream
	conn   int        // window of the connection
	stream int        // initial window of a stream
}

// stallHTTP2 sends requests on this number of streams, with as much of their bodies as
// the windows allow.
func stallHTTP2(proxy, method, url string, streams int) (net.Conn, error) {
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/")
	conn, err := secureTo(proxy, host, "h2")
	if err != nil {
		return nil, err
	}
	z := &zeroWindow{Conn: conn, frames: http2.NewFramer(conn, conn), conn: 65535, stream: 65535}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	if err := z.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return nil, err
	}
	greeted := make(chan struct{})
	go z.read(greeted)
	<-greeted
	for i := range streams {
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for _, f := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", host}, {":path", "/" + path}, {"user-agent", agent}} {
			e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		z.mu.Lock()
		err := z.frames.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(1 + 2*i), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: method == http.MethodGet,
		})
		for left := z.stream; err == nil && method == http.MethodPost && min(left, z.conn) > 0; {
			data := make([]byte, min(left, z.conn, 16<<10))
			err = z.frames.WriteData(uint32(1+2*i), false, data)
			left -= len(data)
			z.conn -= len(data)
		}
		z.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return z, nil
}

// read reads frames until the connection ends. It closes greeted when the windows are known.
func (z *zeroWindow) read(greeted chan struct{}) {
	once := sync.OnceFunc(func() { close(greeted) })
	defer once()
	for {
		frame, err := z.frames.ReadFrame()
		if err != nil {
			return
		}
		z.mu.Lock()
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if v, ok := frame.Value(http2.SettingInitialWindowSize); ok {
				z.stream = int(v)
			}
			if frame.IsAck() {
				once()
			} else {
				z.frames.WriteSettingsAck()
			}
		case *http2.WindowUpdateFrame:
			if frame.StreamID == 0 {
				z.conn += int(frame.Increment)
			}
		}
		z.mu.Unlock()
	}
}

// status returns a size of the gate's process in bytes, as the kernel reports it.
func (g *gate) status(b *testing.B, name string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.process.Pid))
	if err != nil {
		b.Skip(err) // not Linux
	}
	_, line, _ := strings.Cut(string(status), name+":")
	kb, err := strconv.ParseFloat(strings.Fields(line)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb * 1024
}
