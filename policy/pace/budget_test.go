package pace

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// take sends requests until one is refused, and returns how many have started and what is left after the last of
// them.
func take(t *testing.T, p *Pacer, r Request, most int) (started int, late *TooLate) {
	t.Helper()
	for range most {
		turn, err := p.Wait(t.Context(), r)
		if late, ok := errors.AsType[*TooLate](err); ok {
			return started, late
		}
		if err != nil {
			t.Fatal(err)
		}
		started++
		if turn.Limit.Left < 0 || turn.Limit.Starts != 100 {
			t.Fatalf("start %d: the limit is %+v", started, turn.Limit)
		}
		turn.Done(ok)
	}
	return started, nil
}

// TestBudgetTurns: requests that wait for their turn when the limit is reached are refused, and take no turns from
// other crawlers.
func TestBudgetTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(withBudget("shop.example"))
		take(t, s.Pacer, to("a", 0), 98)
		for i := range 4 {
			s.send(t.Context(), fmt.Sprint("a", i), to("a", time.Second), ok)
		}
		s.send(t.Context(), "b", to("b", time.Second), ok)
		s.wants(t, "0s a0", "1s a1", "2s a2 too late by 59m59s, budget, full false", "2s a3 too late by 59m59s, budget, full false", "2s b")
	})
}

// TestBudgetReported: in report mode all requests start and count, and learn that they would have been refused.
func TestBudgetReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, withBudget("shop.example"))
		refused := 0
		for range 110 {
			turn, err := g.pacers[0].Observe(to("a", 0))
			if err != nil {
				refused++
			}
			if turn.Limit.Starts == 0 {
				t.Errorf("the limit is %+v", turn.Limit)
			}
			synctest.Wait()
		}
		if refused != 10 {
			t.Errorf("%d requests would have been refused, want 10", refused)
		}
		if n, _ := take(t, g.pacers[1], to("a", 0), 1); n != 0 {
			t.Error("another gate does not count them")
		}
	})
}

// TestBudgetShared: gates that share a clock share the limit. While it is away, each of them permits its part, and
// remembers its own starts. When the clock was emptied, the limit begins anew.
func TestBudgetShared(t *testing.T) {
	for name, test := range map[string]struct {
		disturb func(c *testClock)
		want    [2]int // starts of each gate
	}{
		"connected": {func(*testClock) {}, [2]int{20, 0}},
		"away":      {func(c *testClock) { c.err = errAway }, [2]int{10, 10}}, // 50 each
		"wrong":     {func(c *testClock) { c.wrong = Grant{Wait: 1e6 * time.Hour} }, [2]int{10, 10}},
		"emptied":   {func(c *testClock) { clear(c.starts) }, [2]int{60, 40}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGates(2, withBudget("shop.example"))
				for gate, n := range []int{40, 40} {
					time.Sleep(5 * time.Minute) // fake clock
					if gate == 0 {
						n, _ = take(t, g.pacers[0], to("a", 0), 40)
					} else {
						n, _ = take(t, g.pacers[1], to("a", 0), 40)
					}
					if n != 40 {
						t.Fatalf("gate %d: %d started", gate, n)
					}
				}
				if g.clock.calls != 80 {
					t.Errorf("80 starts have cost %d calls", g.clock.calls)
				}
				time.Sleep(5 * time.Minute) // fake clock
				g.clock.set(func() { test.disturb(g.clock) })
				for gate, want := range test.want {
					if n, _ := take(t, g.pacers[gate], to("a", 0), 200); n != want {
						t.Errorf("gate %d: %d started, want %d", gate, n, want)
					}
				}
				if name != "away" {
					return
				}
				time.Sleep(time.Second) // fake clock
				g.clock.set(func() { g.clock.err = nil })
				if n, _ := take(t, g.pacers[0], to("a", 0), 1); n != 1 { // 10 were missed, beside 80
					t.Errorf("when the clock is back, %d started", n)
				}
				for _, gate := range []int{1, 0} { // gate 1 tells the clock of its starts
					if n, _ := take(t, g.pacers[gate], to("a", 0), 200); n != 0 {
						t.Errorf("when the clock knows of all starts, %d started", n)
					}
				}
			})
		})
	}
}

// TestBudgetRealClock: by a clock that goes on between two looks, as that of synctest does not, a budget is not spent early.
func TestBudgetRealClock(t *testing.T) {
	p := New(withBudget("shop.example"), nil)
	defer p.Close()
	if n, late := take(t, p, to("a", 0), 101); n != 100 || late == nil {
		t.Errorf("%d started, then %v", n, late)
	}
}
