package origin

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/ca"
)

// TestFewStreams: of many requests at once none is given up since others took the connections that were dialled for it.
func TestFewStreams(t *testing.T) {
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate())
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		NextProtos:     []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf("127.0.0.1") },
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1}, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }),
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	u := newTransport(t, Config{
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots,
		DialTimeout: patience, ResponseHeaderTimeout: patience, IdleTimeout: time.Minute,
	}, &Conns{})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 3 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String()+"/", nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := u.RoundTrip(req)
				if err != nil {
					t.Error(err)
					continue
				}
				resp.Body.Close()
			}
		})
	}
	all.Wait()
}
