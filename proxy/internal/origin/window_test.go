package origin

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"robotsgate/internal/gatetest"
)

// TestWindow: over HTTP/2 an origin may send as much of a response ahead as docs/limits.md says.
func TestWindow(t *testing.T) {
	leaf := localLeaf(t)
	cert, err := x509.ParseCertificate(leaf.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	windows := make(chan uint32, 10) // Transport may try again
	o := gatetest.StartLineOrigin(t, func(_ int, conn net.Conn) {
		windows <- initialWindow(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*leaf}, NextProtos: []string{"h2"}}))
	})
	u := newTransport(t, Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots, DialTimeout: patience}, &Conns{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+o.Host+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if resp, err := u.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
	}()
	if got := receive(t, windows, "SETTINGS"); got != 512<<10 {
		t.Errorf("%d bytes, want 512 KiB", got)
	}
}

// initialWindow returns SETTINGS_INITIAL_WINDOW_SIZE of a client (RFC 9113, 3.4, 4.1 and 6.5).
func initialWindow(conn io.Reader) uint32 {
	head := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")+9)
	if _, err := io.ReadFull(conn, head); err != nil {
		return 0
	}
	settings := make([]byte, int(head[24])<<16|int(head[25])<<8|int(head[26]))
	if _, err := io.ReadFull(conn, settings); err != nil {
		return 0
	}
	for ; len(settings) >= 6; settings = settings[6:] {
		if binary.BigEndian.Uint16(settings) == 4 {
			return binary.BigEndian.Uint32(settings[2:])
		}
	}
	return 0
}
