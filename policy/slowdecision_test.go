package policy

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowDecisionsWait checks that slow decisions wait for their turn, within
// bounds, and that no other decision waits.
func TestSlowDecisionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve(example, rules(complexBody))
		e := engineFor(t, defaults(), web, io.Discard)
		decide := func(ctx context.Context, path string) (Reason, error) {
			d, err := e.Decide(ctx, asks(t, "https://example.com"+path, "Bot/1.0"))
			return d.Reason, err
		}
		wantCostly := func(ctx context.Context, want error, after time.Duration) {
			t.Helper()
			start := time.Now()
			reason, err := decide(ctx, complexPath)
			if waited := time.Since(start); reason != "" || !errors.Is(err, want) || waited != after {
				t.Errorf("got %q, %v after %v; want %v after %v", reason, err, waited, want, after)
			}
		}
		limit := e.slow
		if got, want := cap(limit.running), max(1, runtime.GOMAXPROCS(0)/2); got != want {
			t.Errorf("%d slow decisions run at a time, want %d, half of the processors", got, want)
		}
		for range cap(limit.running) {
			if err := limit.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if reason, err := decide(t.Context(), "/x"); reason != NoMatch || err != nil {
			t.Errorf("an ordinary decision: %q, %v", reason, err)
		}
		wantCostly(t.Context(), ErrCostly, maxSlowWait)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantCostly(short, context.DeadlineExceeded, time.Second)

		var decided []Reason
		go func() {
			reason, _ := decide(t.Context(), complexPath)
			decided = append(decided, reason)
		}()
		synctest.Wait()
		if n := limit.waiting.Load(); n != 1 || decided != nil {
			t.Errorf("%d wait, %q decided; want 1 and none", n, decided)
		}
		// An engine with other settings shares the limit.
		other := e.Reconfigured(Config{Robots: defaults(), Transport: web})
		if other.slow != limit {
			t.Error("after a reload there is another limit")
		}
		limit.waiting.Add(1024 - 1)
		wantCostly(t.Context(), ErrCostly, 0)
		limit.waiting.Add(1 - 1024)
		limit.release()
		synctest.Wait()
		if len(decided) != 1 || decided[0] != TooComplex {
			t.Errorf("decided %q, want %s", decided, TooComplex)
		}
		if n := limit.waiting.Load(); n != 0 || len(limit.running) != cap(limit.running)-1 {
			t.Errorf("%d wait, %d run; want none and %d", n, len(limit.running), cap(limit.running)-1)
		}
	})
}
