package origin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

// TestMaxConnsPerHost: a request waits while as many connections to its origin are in use as MaxConnsPerHost says.
func TestMaxConnsPerHost(t *testing.T) {
	arrived, goOn := make(chan bool, 10), make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- true
		<-goOn
	}))
	defer s.Close()
	u := newTransport(t, Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxConnsPerHost: 2}, &Conns{})
	get := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := u.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	answers := make(chan error, 2)
	for range 2 {
		go func() { answers <- get(t.Context()) }()
		receive(t, arrived, "a request")
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := get(short); !errors.Is(err, context.DeadlineExceeded) || len(arrived) > 0 {
		t.Errorf("a third request: got %v, %d arrived; want none", err, len(arrived))
	}
	close(goOn)
	for range 2 {
		if err := receive(t, answers, "an answer"); err != nil {
			t.Error(err)
		}
	}
	if err := get(t.Context()); err != nil {
		t.Errorf("after the first two: %v", err)
	}
}
