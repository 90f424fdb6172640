package storetest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

func TestSharedMap(t *testing.T) {
	Test(t, func(*testing.T) snapshot.Store { return NewMap() })
}

// web answers every request for a robots.txt after a second.
type web struct {
	mu      sync.Mutex
	fetches map[string]int // by URL and User-Agent
	status  func(userAgent string) int
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.fetches[r.URL.String()+" "+r.UserAgent()]++
	w.mu.Unlock()
	time.Sleep(time.Second) // fake clock
	status := http.StatusOK
	if w.status != nil {
		status = w.status(r.UserAgent())
	}
	body := "User-agent: *\nDisallow: /private/\n"
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (w *web) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.fetches {
		n += each
	}
	return n
}

func engine(t *testing.T, w *web, s snapshot.Store) *policy.Engine {
	t.Helper()
	e, err := policy.New(policy.Config{Robots: policy.DefaultRobots(), Transport: w, Store: s})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func decide(t *testing.T, e *policy.Engine, url, userAgent string) *policy.Decision {
	t.Helper()
	target, err := canonical.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Decide(t.Context(), policy.Request{Target: target, UserAgent: userAgent})
	if err != nil {
		t.Error(err)
		return &policy.Decision{Robots: &snapshot.Resolution{}}
	}
	return d
}

// TestSharedSnapshot: an engine decides by the robots.txt that another one has fetched.
func TestSharedSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := &web{fetches: map[string]int{}}, NewMap()
		a, b := engine(t, w, s), engine(t, w, s)
		defer a.Close()
		defer b.Close()
		if d := decide(t, a, "https://example.com/private/x", "Bot/1.0"); d.Allow || d.Robots.From != snapshot.Fetched {
			t.Errorf("the first engine: got %+v", d)
		}
		time.Sleep(time.Second) // fake clock: it is saved
		d := decide(t, b, "https://example.com/private/x", "Bot/1.0")
		if d.Allow || d.Reason != policy.ByRule || d.Robots.State != snapshot.Fresh || d.Robots.From != snapshot.InStore {
			t.Errorf("the second engine: got %+v, %+v", d, d.Robots)
		}
		if n := w.total(); n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
	})
}

// TestSharedFetch: of several engines that need an origin at once, one fetches. The others
// wait for its answer.
func TestSharedFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := &web{fetches: map[string]int{}}, NewMap()
		const engines, origins = 8, 20
		start := time.Now()
		var all sync.WaitGroup
		for range engines {
			e := engine(t, w, s)
			defer e.Close()
			for i := range origins {
				all.Go(func() {
					if d := decide(t, e, fmt.Sprintf("https://%d.example/private/x", i), "Bot/1.0"); d.Allow || d.Reason != policy.ByRule {
						t.Errorf("origin %d: got %+v", i, d)
					}
				})
			}
		}
		all.Wait()
		if n := w.total(); n != origins {
			t.Errorf("%d fetches, want %d", n, origins)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("the last decision came after %v", took)
		}
	})
}

// TestSharedFetchForOne: an answer that binds one crawler only leaves the others to fetch for
// themselves, once for all engines.
func TestSharedFetchForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := &web{fetches: map[string]int{}, status: func(string) int { return http.StatusForbidden }}, NewMap()
		a, b := engine(t, w, s), engine(t, w, s)
		defer a.Close()
		defer b.Close()
		var all sync.WaitGroup
		for _, e := range []*policy.Engine{a, b} {
			for _, agent := range []string{"ABot/1.0", "BBot/1.0"} {
				all.Go(func() {
					if d := decide(t, e, "https://example.com/x", agent); !d.Allow || d.Reason != policy.IsUnavailable {
						t.Errorf("%s: got %+v", agent, d)
					}
				})
			}
		}
		all.Wait()
		for request, n := range w.fetches {
			// Both engines can have an answer that the other one's set lacks: a lost update costs a fetch.
			if n > 2 {
				t.Errorf("%s: %d fetches", request, n)
			}
		}
	})
}

// TestPermissionHeldForLong: an engine fetches in the end although another process does not release
// the permission, within the time that a request may wait.
func TestPermissionHeldForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := &web{fetches: map[string]int{}}, NewMap()
		s.Acquire(t.Context(), "https://example.com")
		e := engine(t, w, s)
		defer e.Close()
		start := time.Now()
		d := decide(t, e, "https://example.com/private/x", "Bot/1.0")
		if d.Allow || d.Reason != policy.ByRule || d.Robots.State != snapshot.Fresh {
			t.Errorf("got %+v, %+v", d, d.Robots)
		}
		if took, most := time.Since(start), 2*policy.DefaultRobots().Timeout; took > most {
			t.Errorf("the decision took %v, want %v at most", took, most)
		}
	})
}
