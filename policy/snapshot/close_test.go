package snapshot

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestClose ends fetches: requests that wait for one get an error, and a fetch that was cut
// short is not taken for a failure of the origin.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, s := newOrigins(), newDurable()
		web.Serve(example, slow(5*time.Second, rules("")))
		web.Serve("https://b.example/robots.txt", rules(""))
		e := engineFor(t, defaults(), web, s, io.Discard)
		e.Decide(t.Context(), asks(t, "https://b.example/", "Bot/1.0"))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if got, want := verdict(e.Decide(t.Context(), asks(t, "https://example.com/", "Bot/1.0"))), "error other"; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
		synctest.Wait()
		e.Close()
		wg.Wait()
		if _, ok := s.Load(t.Context(), "https://example.com robotsgate/0"); ok {
			t.Error("a fetch that was cut short is kept")
		}
		if _, ok := s.Load(t.Context(), "https://b.example robotsgate/0"); !ok {
			t.Error("what was fetched before is not saved")
		}
		// Late requests get an error and do no harm.
		_, err := e.Decide(t.Context(), asks(t, "https://example.com/", "Bot/1.0"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
		e.Refresh(t.Context(), asks(t, "https://b.example/", "Bot/1.0"))
		e.Known(t.Context(), Query{Scope: Scope{Origin: "https://b.example"}, UserAgent: "robotsgate/0"})
		if n := len(web.Fetched()); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
	})
}

// TestCloseBetweenRequests is for the race detector: a reload closes an engine
// that requests still use.
func TestCloseBetweenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, rules("User-agent: *\nDisallow: /\n"))
		e := engineFor(t, defaults(), web, newDurable(), io.Discard)
		r := asks(t, "https://example.com/", "Bot/1.0")
		e.Decide(t.Context(), r)
		time.Sleep(time.Second) // fake clock: it is saved
		var wg sync.WaitGroup
		begun := make(chan struct{})
		var closing atomic.Bool
		for g := range 8 {
			wg.Go(func() {
				for i := range 5000 {
					got := verdict(e.Decide(t.Context(), r))
					if !strings.HasPrefix(got, "deny rule ") && !(closing.Load() && strings.HasPrefix(got, "error ")) {
						t.Errorf("got %s, want deny by the rule, or an error after Close", got)
						return
					}
					if g == 0 && i == 500 {
						close(begun)
					}
				}
			})
		}
		<-begun
		closing.Store(true)
		e.Close()
		wg.Wait()
	})
}
