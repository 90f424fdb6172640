package origin

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestUploadHTTP2: requests with a body share a connection over HTTP/2. An origin that speaks only HTTP/1 from then on
// receives the body whole, with "Connection: close".
func TestUploadHTTP2(t *testing.T) {
	for name, configure := range map[string]func(*Config){
		"direct":         func(*Config) {},
		"one connection": func(c *Config) { c.MaxConnsPerHost = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			var received []string // "HTTP/2.0 127.0.0.1:50000": the connection's version and address
			serve := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				received = append(received, r.Proto+" "+r.RemoteAddr)
				text, err := io.ReadAll(r.Body)
				fmt.Fprint(rw, string(text), " ", err, " ", r.Close)
			})
			s := httptest.NewUnstartedServer(serve)
			s.EnableHTTP2 = true
			s.StartTLS()
			defer s.Close()
			// Connections that begin from then on are over HTTP/1.
			onlyHTTP1 := s.TLS.Clone()
			onlyHTTP1.NextProtos = nil
			offered := s.TLS.Clone()
			s.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return offered, nil }

			roots := x509.NewCertPool()
			roots.AddCert(s.Certificate())
			c := Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots}
			configure(&c)
			u := newTransport(t, c, &Conns{})
			send := func(want string) {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, struct{ io.Reader }{strings.NewReader("body")})
				if err != nil {
					t.Fatal(err)
				}
				resp, err := u.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if text, err := io.ReadAll(resp.Body); string(text) != want {
					t.Errorf("got %q, %v, want %q", text, err, want)
				}
			}
			for range 4 {
				send("body <nil> false")
			}
			// The first tells that the origin speaks HTTP/2.
			if len(received) != 4 || !strings.HasPrefix(received[0], "HTTP/2.0") || len(slices.Compact(received[1:])) != 1 {
				t.Errorf("connections: %q", received)
			}
			offered = onlyHTTP1
			u.CloseIdleConnections()
			for range 2 {
				send("body <nil> true")
			}
			if len(received) != 6 || received[4] == received[5] {
				t.Errorf("connections: %q", received)
			}
		})
	}
}
