package proxy

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// A tlsOrigin speaks HTTP/1 and HTTP/2, and counts its connections.
type tlsOrigin struct {
	url          string
	upstream     *Upstream // that trusts it
	opened, gone atomic.Int64
}

func startTLSOrigin(t *testing.T, serve http.HandlerFunc) *tlsOrigin {
	s := httptest.NewUnstartedServer(serve)
	o := &tlsOrigin{}
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			o.opened.Add(1)
		case http.StateClosed, http.StateHijacked:
			o.gone.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	o.url = s.URL
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	o.upstream = NewUpstream(Egress{
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots,
		DialTimeout: patience, ResponseHeaderTimeout: patience, IdleTimeout: time.Hour,
	})
	t.Cleanup(o.upstream.Close)
	return o
}

func (o *tlsOrigin) get(t *testing.T, upgrade bool) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.url+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if upgrade {
		r.Header["Connection"], r.Header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	}
	resp, err := o.upstream.RoundTrip(r)
	if err != nil {
		t.Fatalf("upgrade %v: %v", upgrade, err)
	}
	defer resp.Body.Close()
	if upgrade {
		return resp, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// A WebSocket is asked for over HTTP/1, whatever else the origin speaks, and whether that
// is known or not.
func TestWebSocketToHTTP2Origin(t *testing.T) {
	o := startTLSOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			io.WriteString(w, r.Proto)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	})
	for _, upgrade := range []bool{true, false, true, false} {
		resp, body := o.get(t, upgrade)
		if upgrade {
			wantStatus(t, resp, http.StatusSwitchingProtocols)
		} else if body != "HTTP/2.0" {
			t.Errorf("a request beside it is sent over %q", body)
		}
	}
}
