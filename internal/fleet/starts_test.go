package fleet

import (
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/pace"
)

// TestStartsInStore: scripts/reserve.lua answers as pace.Starts does, whatever reservations come one after another.
// All times are whole minutes apart, so that the milliseconds between two calls make no difference.
func TestStartsInStore(t *testing.T) {
	s, random := newRealServer(t), gatetest.Random(t)
	minutes := func(n int) time.Duration { return time.Duration(random.IntN(n)) * time.Minute }
	for range gatetest.Size(30, 300) {
		s.flush()
		var starts pace.Starts
		var given, wants []time.Duration
		for i := range 40 {
			r := pace.Reservation{Interval: minutes(5), Since: -1, Longest: minutes(30) - 30*time.Second, Memory: time.Hour}
			if random.IntN(4) == 0 {
				r.Since = minutes(10)
			}
			want := r
			switch n := random.IntN(6); {
			case n == 0 && len(given) > 0:
				n := random.IntN(len(given))
				r.Returned, want.Returned = given[n], wants[n]
			case n == 1:
				r = pace.Reservation{Interval: time.Hour, Starts: 1 + random.IntN(20), Step: time.Hour / 64, Own: random.IntN(10), Missed: max(random.IntN(10)-5, 0), Since: -1, Memory: time.Hour}
				want = r
			}
			now := time.Duration(time.Now().UnixMicro()) * time.Microsecond
			before := append(pace.Starts(nil), starts...)
			expected := starts.Reserve(want, now)
			got, err := s.reserve(testContext(t), testName, r)
			if err != nil || (got.Wait-expected.Wait).Abs() > 10*time.Second || (got.Start == 0) != (expected.Start == 0) || got.Left != expected.Left {
				t.Fatalf("step %d: got %+v, %v, want %+v, for %+v after %v", i, got, err, expected, r, before)
			}
			if got.Start != 0 && r.Step == 0 {
				given, wants = append(given, got.Start), append(wants, expected.Start)
			}
		}
	}
}
