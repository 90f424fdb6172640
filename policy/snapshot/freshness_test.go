package snapshot

import (
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	for _, test := range []struct {
		name string
		s    Snapshot
		want time.Duration
	}{
		{"it does not say", Snapshot{Status: 200, Lifetime: -1}, 12 * time.Hour},
		{"between the bounds", Snapshot{Status: 200, Lifetime: time.Hour}, time.Hour},
		{"too short", Snapshot{Status: 200}, 5 * time.Minute},
		{"too long", Snapshot{Status: 200, Lifetime: 48 * time.Hour}, 12 * time.Hour},
		{"unavailable", Snapshot{Status: 404, Lifetime: time.Hour}, time.Hour},
		{"unavailable, it does not say", Snapshot{Status: 404, Lifetime: -1}, 12 * time.Hour},
		{"redirects", Snapshot{Status: 302, Looped: true, Lifetime: -1}, 12 * time.Hour},
		{"first failure", Snapshot{Lifetime: -1, Failures: 1}, 5 * time.Second},
		{"it may not be cached", Snapshot{Status: 503, Failures: 1, Lifetime: time.Hour}, 5 * time.Second},
		{"second", Snapshot{Status: 500, Failures: 2}, 10 * time.Second},
		{"eighth", Snapshot{Status: 500, Failures: 8}, 640 * time.Second},
		{"ninth", Snapshot{Status: 500, Failures: 9}, 15 * time.Minute},
		{"very many", Snapshot{Status: 500, Failures: 1 << 40}, 15 * time.Minute},
		{"Retry-After", Snapshot{Status: 429, Failures: 1, Retry: time.Hour}, time.Hour},
		{"a long one", Snapshot{Status: 429, Failures: 1, Retry: 1000 * time.Hour}, 24 * time.Hour},
		{"a short one", Snapshot{Status: 503, Failures: 9, Retry: time.Second}, 15 * time.Minute},
	} {
		c := Settings{MinAge: 5 * time.Minute, MaxAge: 12 * time.Hour}
		test.s.Fetched = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		if got := c.until(&test.s).Sub(test.s.Fetched); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
