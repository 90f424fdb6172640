package origin

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/internal/ca"
	"robotsgate/internal/gatetest"
)

// TestHTTP1Required: a request that an origin wants over HTTP/1.1 (RFC 9113, 7) is sent so, and so are the next ones at
// once. A body is not sent twice.
func TestHTTP1Required(t *testing.T) {
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate())
	config := &tls.Config{
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf("127.0.0.1") },
	}
	for name, refuse := range map[string]func(f *http2.Framer, stream uint32) (goesOn bool){
		"a stream": func(f *http2.Framer, stream uint32) bool {
			return f.WriteRSTStream(stream, http2.ErrCodeHTTP11Required) == nil
		},
		"the connection": func(f *http2.Framer, stream uint32) bool {
			f.WriteGoAway(stream, http2.ErrCodeHTTP11Required, nil)
			return false
		},
		"the connection before stream": func(f *http2.Framer, _ uint32) bool { f.WriteGoAway(0, http2.ErrCodeHTTP11Required, nil); return false },
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(name+" "+method, func(t *testing.T) {
				var overHTTP2 atomic.Int64
				o := gatetest.StartLineOrigin(t, func(_ int, conn net.Conn) {
					secure := tls.Server(conn, config)
					defer secure.Close()
					if secure.Handshake() != nil {
						return
					}
					if secure.ConnectionState().NegotiatedProtocol == "h2" {
						overHTTP2.Add(1)
						refuseStreams(secure, refuse)
						return
					}
					r := bufio.NewReader(secure)
					for req, err := http.ReadRequest(r); err == nil; req, err = http.ReadRequest(r) {
						io.Copy(io.Discard, req.Body)
						io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}
				})
				u := newTransport(t, Config{
					AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots,
					DialTimeout: patience, ResponseHeaderTimeout: patience, IdleTimeout: time.Minute,
				}, nil)
				for i := range 3 {
					req, err := http.NewRequestWithContext(t.Context(), method, "https://"+o.Host+"/", nil)
					if err != nil {
						t.Fatal(err)
					}
					if method == http.MethodPost {
						req.Body, req.ContentLength = io.NopCloser(strings.NewReader("a body")), 6
					}
					resp, err := u.RoundTrip(req)
					var unreadable *answerError
					switch {
					case i == 0 && method == http.MethodPost:
						if !errors.As(err, &unreadable) || !strings.Contains(unreadable.Why, "HTTP/1.1") {
							t.Errorf("got %v, want an error that names HTTP/1.1", err)
						}
					case err != nil:
						t.Fatal(err)
					default:
						resp.Body.Close()
						wantStatus(t, resp, 200)
					}
				}
				if n := overHTTP2.Load(); n != 1 {
					t.Errorf("%d connections over HTTP/2, want 1", n)
				}
			})
		}
	}
}

// refuseStreams speaks HTTP/2 until refuse says that the connection ends.
func refuseStreams(conn net.Conn, refuse func(*http2.Framer, uint32) bool) {
	if _, err := io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
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
		case *http2.HeadersFrame:
			if !refuse(f, frame.StreamID) {
				return
			}
		}
	}
}
