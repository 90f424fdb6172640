package origin

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// A tlsOrigin speaks HTTP/1 and HTTP/2, and counts its connections.
type tlsOrigin struct {
	url          string
	upstream     *Transport // that trusts it
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
	o.upstream = newTransport(t, Config{
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots,
		DialTimeout: patience, ResponseHeaderTimeout: patience, IdleTimeout: time.Hour,
	}, &Conns{})
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

// An origin that offers no TLS 1.2 or later is sent nothing.
func TestOldTLS(t *testing.T) {
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version}
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		defer s.Close()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		u := newTransport(t, Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots}, &Conns{})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: error %v, want a response: %v", tls.VersionName(version), err, want)
		}
	}
}

// A WebSocket handshake is sent over HTTP/1, also to an origin that prefers HTTP/2, and whether that
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

// A full recent forgets everything, and then holds what is added.
func TestRecent(t *testing.T) {
	var r recent[int]
	for i := range maxRecent {
		r.put(strconv.Itoa(i), i)
	}
	for _, i := range []int{0, maxRecent - 1} {
		if v, ok := r.get(strconv.Itoa(i)); !ok || v != i {
			t.Errorf("%d: got %d, %v", i, v, ok)
		}
	}
	if _, ok := r.get("other"); ok {
		t.Error("it holds what was not added")
	}
	r.put("other", 1)
	_, other := r.get("other")
	_, first := r.get("0")
	if !other || first || len(r.values) != 1 {
		t.Errorf("when it was full it holds %d", len(r.values))
	}
}
