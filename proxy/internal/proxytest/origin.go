package proxytest

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"robotsgate/internal/ca"
	"robotsgate/internal/gatetest"
)

// StartUnanswered starts an origin that responds to robots.txt only, or sends the beginning of a
// response. The channels report that a request has arrived, and that its connection was closed.
func StartUnanswered(t *testing.T, beginning string) (o *gatetest.LineOrigin, arrived, closed chan bool) {
	arrived, closed = make(chan bool, 1), make(chan bool, 1)
	return gatetest.StartLineOrigin(t, gatetest.WithoutRobots(func(_ int, conn net.Conn, _ *http.Request) bool {
		io.WriteString(conn, beginning)
		arrived <- true
		io.Copy(io.Discard, conn)
		closed <- true
		return false
	})), arrived, closed
}

// StartHTTP2Origin starts an origin that answers in frames: a 404 for robots.txt, and
// what reply writes for everything else. It returns its URL and counts connections.
func StartHTTP2Origin(t *testing.T, authority *ca.Authority, reply func(f *http2.Framer, r *http2.MetaHeadersFrame)) (url string, conns *atomic.Int64) {
	config := &tls.Config{
		NextProtos:     []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf("127.0.0.1") },
	}
	o := gatetest.StartLineOrigin(t, func(_ int, conn net.Conn) { serveFrames(tls.Server(conn, config), reply) })
	return "https://" + o.Host, &o.Conns
}

// serveFrames serves a connection over HTTP/2 until the gate closes it. It answers requests for robots.txt with 404, and
// calls reply for the others.
func serveFrames(conn net.Conn, reply func(f *http2.Framer, r *http2.MetaHeadersFrame)) {
	defer conn.Close()
	if _, err := io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			if frame.PseudoValue("path") == "/robots.txt" {
				WriteHead(f, frame.StreamID, true, ":status", "404")
				continue
			}
			reply(f, frame)
		}
	}
}

// StartRawOrigin starts a server that speaks no HTTP, and a gate that passes tunnels to it.
func StartRawOrigin(t *testing.T, serve func(*net.TCPConn)) (g *Gate, target string) {
	t.Helper()
	o := gatetest.StartLineOrigin(t, func(_ int, conn net.Conn) { serve(conn.(*net.TCPConn)) })
	return Start(t, Options{Proxy: PassThrough, Engine: AllowHost(t, "127.0.0.1")}), o.Host
}

// An InFlight is a handler that holds requests until Release is closed, or until they are cancelled.
type InFlight struct {
	Arrived, Gone chan string // paths
	Release       chan bool
}

// NewInFlight returns a handler that holds no request yet.
func NewInFlight() *InFlight {
	return &InFlight{make(chan string, 10), make(chan string, 10), make(chan bool)}
}

func (f *InFlight) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/quick" {
		return
	}
	if r.URL.Path == "/half" {
		io.WriteString(rw, "half")
		rw.(http.Flusher).Flush()
	}
	f.Arrived <- r.URL.Path
	select {
	case <-f.Release:
		io.WriteString(rw, "done")
	case <-r.Context().Done():
		f.Gone <- r.URL.Path
	}
}
