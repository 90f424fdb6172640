package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"robotsgate/internal/ca"
)

// startHTTP2Origin starts an origin that answers in frames: a 404 for robots.txt, and
// what reply writes for everything else. It returns its URL and counts connections.
func startHTTP2Origin(t *testing.T, authority *ca.Authority, reply func(f *http2.Framer, stream uint32)) (url string, conns *atomic.Int64) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		NextProtos:     []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf("127.0.0.1") },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	conns = new(atomic.Int64)
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			conns.Add(1)
			go serveFrames(conn, reply)
		}
	}()
	return "https://" + l.Addr().String(), conns
}

func serveFrames(conn net.Conn, reply func(f *http2.Framer, stream uint32)) {
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
				writeHead(f, frame.StreamID, true, ":status", "404")
				continue
			}
			reply(f, frame.StreamID)
		}
	}
}

func writeHead(f *http2.Framer, stream uint32, last bool, fields ...string) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := 0; i+1 < len(fields); i += 2 {
		e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: last})
}

// An origin may refuse a stream or a connection over HTTP/2 and be asked again by
// Transport, but neither for ever nor more than a few times; and net/http does not
// look at all the lengths that it names.
func TestHTTP2Origin(t *testing.T) {
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{egress: func(e *Egress) {
		e.Roots.AddCert(authority.Certificate())
		e.DialTimeout, e.ResponseHeaderTimeout = 500*time.Millisecond, 500*time.Millisecond
	}})
	for name, c := range map[string]struct {
		reply func(f *http2.Framer, stream uint32)
		want  int
	}{
		"the connection is refused": {func(f *http2.Framer, stream uint32) { f.WriteGoAway(0, http2.ErrCodeNo, nil) }, 502},
		"the stream is refused":     {func(f *http2.Framer, stream uint32) { f.WriteRSTStream(stream, http2.ErrCodeRefusedStream) }, 504},
		"nothing":                   {func(f *http2.Framer, stream uint32) {}, 504},
		"two lengths": {func(f *http2.Framer, stream uint32) {
			writeHead(f, stream, false, ":status", "200", "content-length", "2", "content-length", "3")
			f.WriteData(stream, true, []byte("ok"))
		}, 502},
		"a length that is none": {func(f *http2.Framer, stream uint32) {
			writeHead(f, stream, false, ":status", "200", "content-length", "+2")
			f.WriteData(stream, true, []byte("ok"))
		}, 502},
		"a length": {func(f *http2.Framer, stream uint32) {
			writeHead(f, stream, false, ":status", "200", "content-length", "2")
			f.WriteData(stream, true, []byte("ok"))
		}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			url, conns := startHTTP2Origin(t, authority, c.reply)
			start := time.Now()
			resp, _ := w.get(url + "/")
			wantStatus(t, resp, c.want)
			if took := time.Since(start); took > patience {
				t.Errorf("answered after %v", took)
			}
			// One for robots.txt, and one that may be dialled as it is given up.
			if n := conns.Load(); n > maxAttempts+2 {
				t.Errorf("%d connections were made for one request", n)
			}
		})
	}
}

// An origin may have forgotten all connections that are kept to it: they are gone
// through, however many.
func TestStaleConnections(t *testing.T) {
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	type asked struct{}
	var together sync.WaitGroup
	s := &http.Server{
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, asked{}, new(atomic.Int64))
		},
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				rw.Header().Set("Connection", "close")
				rw.WriteHeader(http.StatusNotFound)
				return
			}
			if r.Context().Value(asked{}).(*atomic.Int64).Add(1) > 1 {
				panic(http.ErrAbortHandler)
			}
			if r.URL.Path == "/together" {
				together.Done()
				together.Wait() // so that each needs a connection of its own
			}
		}),
		ErrorLog: log.New(io.Discard, "", 0),
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf("127.0.0.1") },
	})
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	w := newWorld(t, options{egress: func(e *Egress) { e.Roots.AddCert(authority.Certificate()) }})
	url := "https://" + l.Addr().String()
	const many = 3 * maxAttempts
	together.Add(many)
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			resp, _ := w.get(url + "/together")
			wantStatus(t, resp, 200)
		})
	}
	all.Wait()
	resp, _ := w.get(url + "/alone")
	wantStatus(t, resp, 200)
}
