package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"robotsgate/policy/pace"
)

// testPauses returns the clocks of two gates that share a store.
func testPauses(t *testing.T, s server, rejected *int) (a, b *paceClock) {
	t.Helper()
	sealer, err := newSealer(testKey, "robotsgate")
	if err != nil {
		t.Fatal(err)
	}
	call := func(ctx context.Context, f func(context.Context, server) error) error { return f(ctx, s) }
	reject := func(string, error) { *rejected++ }
	gates := func() int { return 2 }
	return newPaceClock(sealer, call, gates, reject), newPaceClock(sealer, call, gates, reject)
}

const shop = "https://shop.example:443"

// begin returns a change that begins a pause of 10 s, which counts for a minute.
func begin(p *pace.Pause, now time.Duration) bool {
	*p = pace.Pause{Since: now, Until: now + 10*time.Second, Ends: now + time.Minute, Row: p.Row + 1, First: true}
	return true
}

// pauseOf returns a pause as a gate reads it.
func pauseOf(t *testing.T, c *paceClock, origin, token string) (got pace.Pause) {
	t.Helper()
	err := c.Pause(origin, token, func(p *pace.Pause, _ time.Duration) bool {
		got = *p
		return false
	})
	if err != nil {
		t.Error(err)
	}
	return got
}

// TestStoredPauses: what one gate makes of a pause another reads, by origin and token, in a Redis and in the
// tests' store.
func TestStoredPauses(t *testing.T) {
	for name, s := range map[string]testServer{"Redis": newRealServer(t), "memory": newMemoryServer()} {
		t.Run(name, func(t *testing.T) {
			rejected := 0
			a, b := testPauses(t, s, &rejected)
			if got := pauseOf(t, b, shop, "examplebot"); got != (pace.Pause{}) {
				t.Errorf("before all: got %+v", got)
			}
			var want pace.Pause
			if err := a.Pause(shop, "examplebot", func(p *pace.Pause, now time.Duration) bool {
				begin(p, now)
				p.Row = 3
				want = *p
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if got := pauseOf(t, b, shop, "examplebot"); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			for _, other := range [][2]string{{shop, "otherbot"}, {shop, ""}, {"https://shop.example:8443", "examplebot"}} {
				if got := pauseOf(t, b, other[0], other[1]); got != (pace.Pause{}) {
					t.Errorf("%v: got %+v, want none", other, got)
				}
			}
			// Another gate changes the pause between the read and the write: the change is made again, with that.
			calls := 0
			if err := a.Pause(shop, "examplebot", func(p *pace.Pause, now time.Duration) bool {
				if calls++; calls == 1 {
					if err := b.Pause(shop, "examplebot", begin); err != nil {
						t.Error(err)
					}
				}
				return begin(p, now)
			}); err != nil || calls != 2 {
				t.Errorf("%d calls, %v, want 2", calls, err)
			}
			if got := pauseOf(t, b, shop, "examplebot"); got.Row != 5 {
				t.Errorf("the row is %d, want 5", got.Row)
			}
			if rejected > 0 {
				t.Errorf("%d values were rejected", rejected)
			}
		})
	}
}

// TestStoredPausesBounds: the pauses of one origin take less than 700 bytes, however many tokens there are and
// however long those are; ended ones make place. The key and the value name nothing, and end by themselves.
func TestStoredPausesBounds(t *testing.T) {
	s := newRealServer(t)
	rejected := 0
	a, b := testPauses(t, s, &rejected)
	if err := a.Pause(shop, "soon over", func(p *pace.Pause, now time.Duration) bool {
		*p = pace.Pause{Since: now, Until: now, Ends: now + time.Microsecond, Row: 1}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxPauses {
		if err := a.Pause(shop, fmt.Sprintf("bot%d%0500d", i, 0), begin); err != nil {
			t.Fatal(err)
		}
	}
	known := 0
	for i := range 3 * maxPauses {
		if got := pauseOf(t, b, shop, fmt.Sprintf("bot%d%0500d", i, 0)); got.Row > 0 {
			known++
		}
	}
	if known != maxPauses {
		t.Errorf("%d pauses are shared, want %d", known, maxPauses)
	}
	keys := strings.Fields(s.process.Command("KEYS", "*"))
	if len(keys) != 1 || strings.Contains(keys[0], "shop") || !strings.HasPrefix(keys[0], "robotsgate:") {
		t.Fatalf("the keys are %q", keys)
	}
	stored := s.process.Command("HGETALL", keys[0])
	if n := len(keys[0]) + len(stored); n > 700 {
		t.Errorf("the key and its value have %d bytes", n)
	}
	if strings.Contains(stored, "bot") || strings.Contains(stored, "shop") {
		t.Errorf("the value names the origin or a token: %q", stored)
	}
	if ttl := s.process.Command("TTL", keys[0]); ttl != "59" && ttl != "60" {
		t.Errorf("the key ends after %s s, want 60", ttl)
	}
	if rejected > 0 {
		t.Errorf("%d values were rejected", rejected)
	}
}

// TestStoredPausesForged: a value that no gate has written for this origin counts as none, is counted, and is
// replaced by the next pause.
func TestStoredPausesForged(t *testing.T) {
	for name, forge := range map[string]func(s realServer, key, other string){
		"another type":   func(s realServer, key, _ string) { s.process.Command("SET", key, "x") },
		"no value":       func(s realServer, key, _ string) { s.process.Command("HSET", key, "r", "x") },
		"of another key": func(s realServer, key, other string) { s.process.Command("COPY", other, key, "REPLACE") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newRealServer(t)
			rejected := 0
			a, b := testPauses(t, s, &rejected)
			if err := a.Pause("https://other.example:443", "examplebot", begin); err != nil {
				t.Fatal(err)
			}
			other := s.process.Command("KEYS", "*")
			if err := a.Pause(shop, "examplebot", begin); err != nil {
				t.Fatal(err)
			}
			key := strings.TrimSpace(strings.ReplaceAll(s.process.Command("KEYS", "*"), other, ""))
			forge(s, key, other)
			if got := pauseOf(t, b, shop, "examplebot"); got != (pace.Pause{}) || rejected != 1 {
				t.Errorf("got %+v, %d rejected, want none and 1", got, rejected)
			}
			if err := a.Pause(shop, "examplebot", begin); err != nil {
				t.Fatal(err)
			}
			if got := pauseOf(t, b, shop, "examplebot"); got.Row != 1 {
				t.Errorf("after the next pause: got %+v", got)
			}
		})
	}
}

// TestStoredPausesLost: an error of the store is one of the call, so that the gate goes on by its own pauses.
func TestStoredPausesLost(t *testing.T) {
	s := newMemoryServer()
	rejected := 0
	a, _ := testPauses(t, s, &rejected)
	for name, f := range map[string]faults{"down": {err: errors.New("down")}, "read-only": {readOnly: true}} {
		s.set(f)
		if err := a.Pause(shop, "examplebot", begin); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
