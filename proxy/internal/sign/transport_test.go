package sign

import (
	"net/http"
	"net/http/httptrace"
	"testing"
)

type stubTransport func(*http.Request) (*http.Response, error)

func (f stubTransport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type anyKey struct{}

func (anyKey) ID() string         { return "an ID" }
func (anyKey) Sign([]byte) []byte { return make([]byte, 64) }

// Each pair of a crawler and an origin that asks for signatures is remembered once, and no other one.
func TestAskedOriginsAreRememberedOnce(t *testing.T) {
	var origins Memory
	origin := stubTransport(func(r *http.Request) (*http.Response, error) {
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
			trace.GotConn(httptrace.GotConnInfo{})
		}
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
		switch r.URL.Path {
		case "/asks":
			resp.Header.Set("Accept-Signature", `sig1=("@authority" "signature-agent");tag="web-bot-auth"`)
		case "/other":
			resp.Header.Set("Accept-Signature", `sig1=("@authority");tag="other"`)
		}
		return resp, nil
	})
	for _, step := range []struct {
		crawler, url string
		want         int
	}{
		{"first", "http://a.example/plain", 0},
		{"first", "http://a.example/other", 0},
		{"first", "http://a.example/asks", 1},
		{"first", "http://a.example/asks", 1},
		{"first", "https://a.example/plain", 1},
		{"second", "https://a.example/asks", 2},
		{"second", "https://a.example/plain", 2},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, step.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := Signing{Crawler: step.crawler, Key: anyKey{}, Agent: "https://bots.example.com", Asked: &origins}
		if _, err := s.Transport(origin).RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		if n := origins.Len(); n != step.want {
			t.Errorf("after %s by %s: %d pairs, want %d", step.url, step.crawler, n, step.want)
		}
	}
}
