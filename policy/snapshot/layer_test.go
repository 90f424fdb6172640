package snapshot

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestLayers: a decision says where its robots.txt was found.
func TestLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, disk := newOrigins(), newDurable()
		web.Serve(example, rules("User-agent: *\nDisallow: /private/\n"))
		robots := defaults()
		ask := func(e *engine) Layer {
			t.Helper()
			d, err := e.Decide(t.Context(), asks(t, "https://example.com/page", "Bot/1.0"))
			if err != nil {
				t.Fatal(err)
			}
			return d.Robots.From
		}
		e := engineFor(t, robots, web, disk, io.Discard)
		for i, want := range []Layer{Fetched, InMemory, InMemory} {
			if got := ask(e); got != want {
				t.Errorf("request %d: got %q, want %q", i, got, want)
			}
		}
		e.Close()
		e = engineFor(t, robots, web, disk, io.Discard)
		if got := ask(e); got != InStore {
			t.Errorf("after a restart: got %q, want %q", got, InStore)
		}
		time.Sleep(robots.MaxAge + time.Hour) // fake clock
		if got := ask(e); got != Fetched {
			t.Errorf("once it is stale: got %q, want %q", got, Fetched)
		}
	})
}
