package pace

import (
	"errors"
	"fmt"
	"robotsgate/internal/gatetest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// quota is a rule that only this test has: each crawler may send 100 requests to each host in an hour, whatever the
// scheme and the port. It shows how much a new rule has to be.
func quota(_ *Config, r *Request) (l Limit, ok bool) {
	_, host, _ := strings.Cut(r.Origin, "://")
	host, _, _ = strings.Cut(host, ":")
	return Limit{By: "quota", Key: r.Crawler + " " + host, Starts: 100, Window: time.Hour}, true
}

// withQuota adds the rule's row to the table.
func withQuota(all ...*Pacer) {
	for _, p := range all {
		p.rules = append(p.rules[:len(p.rules):len(p.rules)], limit(quota))
	}
}

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
		if len(turn.Allowances) != 1 || turn.Allowances[0].Left < 0 || turn.Allowances[0].Starts != 100 {
			t.Fatalf("start %d: the allowances are %+v", started, turn.Allowances)
		}
		turn.Done(ok)
	}
	return started, nil
}

// TestQuota: a crawler's requests to a host are counted over all its origins, and refused at once when the limit is
// reached. Other crawlers and hosts have their own. In each window no more than the limit start, and soon after a
// start has left it another one may follow.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		withQuota(s.Pacer)
		r, tls := to("a", 0), to("a", 0)
		tls.Origin = "https://shop.example:443"
		if n, late := take(t, s.Pacer, r, 60); n != 60 || late != nil {
			t.Fatalf("%d started, %v", n, late)
		}
		time.Sleep(30 * time.Minute) // fake clock
		n, late := take(t, s.Pacer, tls, 60)
		if n != 40 || late == nil || late.By != "quota" || late.Limit.Starts != 100 || late.After != 30*time.Minute {
			t.Fatalf("%d started, %+v", n, late)
		}
		for _, other := range []Request{to("b", 0), {Origin: "http://other.example:80", Crawler: "a"}} {
			if n, _ := take(t, s.Pacer, other, 120); n != 100 {
				t.Errorf("%s at %s: %d started", other.Crawler, other.Origin, n)
			}
		}
		time.Sleep(late.After) // fake clock
		if n, late := take(t, s.Pacer, r, 100); n != 60 || late == nil || late.After > 30*time.Minute || late.After < 29*time.Minute {
			t.Errorf("after the first hour: %d started, %v", n, late)
		}
		time.Sleep(2*time.Hour + sweepInterval) // fake clock
		synctest.Wait()
		s.Pacer.mu.Lock()
		if n := len(s.counts); n > 0 {
			t.Errorf("%d counts are remembered for ever", n)
		}
		s.Pacer.mu.Unlock()
	})
}

// TestQuotaTurns: requests that wait for their turn when the limit is reached are refused, and take no turns from
// other crawlers.
func TestQuotaTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(usual)
		withQuota(s.Pacer)
		take(t, s.Pacer, to("a", 0), 98)
		for i := range 4 {
			s.send(t.Context(), fmt.Sprint("a", i), to("a", time.Second), ok)
		}
		s.send(t.Context(), "b", to("b", time.Second), ok)
		s.wants(t, "0s a0", "1s a1", "2s b", "3s a2 too late by 59m58s, quota, full false", "3s a3 too late by 59m58s, quota, full false")
	})
}

// TestQuotaReported: in report mode all requests start and count, and learn that they would have been refused.
func TestQuotaReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		withQuota(g.pacers...)
		refused := 0
		for range 110 {
			_, turn, err := g.pacers[0].Observe(to("a", 0))
			if err != nil {
				refused++
			}
			if len(turn.Allowances) != 1 {
				t.Errorf("the allowances are %+v", turn.Allowances)
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

// TestQuotaFree: free parts of a page neither wait nor count.
func TestQuotaFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Subresources: Free}, nil)
		withQuota(p)
		r := to("a", 0)
		r.Subresource = true
		for range 200 {
			turn, err := p.Wait(t.Context(), r)
			if turn != nil || err != nil {
				t.Fatalf("%+v, %v", turn, err)
			}
		}
	})
}

// TestQuotaShared: gates that share a clock share the limit. While it is away, each of them permits its part, and
// remembers its own starts. When the clock was emptied, what a gate has started counts.
func TestQuotaShared(t *testing.T) {
	for name, test := range map[string]struct {
		disturb func(c *testClock)
		want    [2]int // starts of each gate
	}{
		"connected": {func(*testClock) {}, [2]int{20, 0}},
		"away":      {func(c *testClock) { c.err = errAway }, [2]int{10, 10}}, // 50 each
		"panics":    {func(c *testClock) { c.panics = true }, [2]int{10, 10}},
		"wrong":     {func(c *testClock) { c.wrong = Grant{Wait: 1e6 * time.Hour} }, [2]int{10, 10}},
		"emptied":   {func(c *testClock) { clear(c.starts) }, [2]int{60, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGates(2, usual)
				withQuota(g.pacers...)
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

// TestQuotaCalls: when the limit is reached, requests of this gate do not ask the clock until there may be a start.
func TestQuotaCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, usual)
		withQuota(g.pacers...)
		take(t, g.pacers[0], to("a", 0), 100)
		for range 10 {
			if n, _ := take(t, g.pacers[1], to("a", 0), 1); n != 0 {
				t.Fatal("the limit is exceeded")
			}
		}
		if g.clock.calls != 101 {
			t.Errorf("%d calls, want 101", g.clock.calls)
		}
		time.Sleep(time.Hour) // fake clock
		if n, _ := take(t, g.pacers[1], to("a", 0), 200); n != 100 {
			t.Errorf("%d started", n)
		}
	})
}

// TestQuotaMany: the number of keys is bounded, and 250,000 of them take at most 40 MiB.
func TestQuotaMany(t *testing.T) {
	before := gatetest.Heap()
	p := New(usual, nil)
	defer p.Close()
	withQuota(p)
	for i := range 250_000 {
		r := Request{Origin: fmt.Sprintf("https://host-%d.shop.example:443", i), Crawler: "news"}
		if _, err := p.Wait(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	took := gatetest.Heap() - before
	t.Logf("%d keys take %.1f MiB", maxCounts, float64(took)/(1<<20))
	if took > 40<<20 {
		t.Errorf("%d keys take %d bytes", maxCounts, took)
	}
	if _, err := p.Wait(t.Context(), to("a", 0)); err == nil {
		t.Error("a further key is not refused")
	}
	runtime.KeepAlive(p)
}
