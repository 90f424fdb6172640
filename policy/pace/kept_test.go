package pace

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/glob"
)

func host(pattern string) glob.Glob {
	g, err := glob.Host(pattern)
	if err != nil {
		panic(err)
	}
	return g
}

// withBudget returns settings with a budget of 100 requests an hour.
func withBudget(hosts ...string) Config {
	c := usual
	b := Budget{Requests: 100, Window: time.Hour}
	for _, h := range hosts {
		b.Hosts = append(b.Hosts, host(h))
	}
	c.Budgets = []Budget{b}
	return c
}

// started sends requests until one is refused, and returns how many have started.
func started(t *testing.T, p *Pacer, r Request) (n int) {
	t.Helper()
	for range 300 {
		turn, err := p.Wait(t.Context(), r)
		if err != nil {
			return n
		}
		turn.Done(ok)
		n++
	}
	return n
}

// TestBudget: the first budget that matches counts, for each crawler and host by itself.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withBudget("*.example")
		c.Budgets = append([]Budget{{Crawlers: []string{"news"}, Hosts: []glob.Glob{host("shop.example")}, Requests: 7, Window: time.Minute}}, c.Budgets...)
		p := New(c, nil)
		for _, test := range []struct {
			crawler, origin string
			want            int
		}{
			{"news", "https://shop.example:443", 7},
			{"news", "http://shop.example:80", 0}, // of the same host
			{"shop", "http://shop.example:80", 100},
			{"news", "http://a.example:80", 100},
			{"news", "http://[::1]:80", 300}, // no budget
		} {
			if n := started(t, p, Request{Origin: test.origin, Crawler: test.crawler}); n != test.want {
				t.Errorf("%s to %s: %d started, want %d", test.crawler, test.origin, n, test.want)
			}
		}
		time.Sleep(time.Minute + time.Second) // fake clock
		if n := started(t, p, Request{Origin: "https://shop.example:443", Crawler: "news"}); n != 7 {
			t.Errorf("in the next minute %d started", n)
		}
	})
}

// TestKept: starts that were kept count in the next process, each once, until their window has passed.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := to("a", 0)
		c := withBudget("shop.example")
		c.Budgets[0].Requests = 40
		p := New(c, nil)
		kept := p.Kept(false)
		started(t, p, r)
		c.Budgets[0].Requests = 100
		p.Use(c)
		kept = append(kept, p.Kept(false)...)
		time.Sleep(30 * time.Minute) // fake clock
		started(t, p, r)
		kept = append(kept, p.Kept(false)...)
		if again := p.Kept(false); len(kept) != 2 || kept[0].N != 40 || kept[1].N != 60 || len(again) > 0 {
			t.Fatalf("kept %+v, then %+v", kept, again)
		}
		all := p.Kept(true)
		time.Sleep(20 * time.Minute) // fake clock
		for name, kept := range map[string][]Kept{"noted": kept, "all": all} {
			next := New(c, nil)
			restore(next, kept)
			if n := started(t, next, r); n != 0 {
				t.Errorf("%s: %d started after 50 minutes", name, n)
			}
		}
		time.Sleep(11 * time.Minute) // fake clock
		next := New(c, nil)
		restore(next, append(kept, Kept{At: time.Now(), N: 5, Window: 40 * 24 * time.Hour}, Kept{At: time.Now(), N: -1, Window: time.Hour}))
		if n := started(t, next, r); n != 40 {
			t.Errorf("%d started after 61 minutes", n)
		}
		kept[1].At = time.Now().Add(time.Hour) // the clock was set back
		next = New(c, nil)
		restore(next, kept)
		if n := started(t, next, r); n != 40 {
			t.Errorf("%d started beside those in the future", n)
		}
		time.Sleep(time.Hour + time.Minute) // fake clock
		if n := started(t, next, r); n != 100 {
			t.Errorf("%d started when those have left the window", n)
		}
	})
}

// TestBusyBudgets: 250,000 counts of hosts with requests in many steps of the window take at most 40 MiB. Where starts
// are counted together, more are refused, never fewer.
func TestBusyBudgets(t *testing.T) {
	before := gatetest.Heap()
	synctest.Test(t, func(t *testing.T) {
		p := New(withBudget("*"), nil)
		var last int
		for range 2 {
			p.mu.Lock()
			for i := range maxCounts {
				l := Limit{Key: strconv.Itoa(i), Starts: 100, Window: time.Hour}
				last = p.add(&l, p.count(l.hash(), l.Window), l.reservation()).Left
			}
			p.mu.Unlock()
			time.Sleep(2 * time.Minute) // fake clock
		}
		if last != 98 {
			t.Errorf("%d are left of 100 after 2", last)
		}
		took := gatetest.Heap() - before
		t.Logf("%d keys take %.1f MiB", maxCounts, float64(took)/(1<<20))
		if took > 40<<20 {
			t.Errorf("%d keys take %d bytes", maxCounts, took)
		}
		p.Close()
	})
}

// TestBudgetReload: a changed window applies at once, also to a gate that another has left nothing.
func TestBudgetReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withBudget("shop.example")
		g := newGates(2, c)
		if n := [2]int{started(t, g.pacers[0], to("a", 0)), started(t, g.pacers[1], to("a", 0))}; n != [2]int{100, 0} {
			t.Errorf("%v started", n)
		}
		time.Sleep(2 * time.Minute) // fake clock
		c.Budgets = []Budget{{Hosts: c.Budgets[0].Hosts, Requests: 100, Window: time.Minute}}
		g.pacers[1].Use(c)
		if n := started(t, g.pacers[1], to("a", 0)); n != 100 {
			t.Errorf("%d started in another window", n)
		}
	})
}

// TestBudgetAway: after the clock was away it learns of the starts that still count, not of earlier ones.
func TestBudgetAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates(2, withBudget("shop.example"))
		g.clock.set(func() { g.clock.err = errAway })
		for range 5 {
			for range 25 {
				turn, err := g.pacers[0].Wait(t.Context(), to("a", 0))
				if err != nil {
					t.Fatal(err)
				}
				turn.Done(ok)
			}
			time.Sleep(40 * time.Minute) // fake clock
		}
		g.clock.set(func() { g.clock.err = nil })
		if n := [2]int{started(t, g.pacers[0], to("a", 0)), started(t, g.pacers[1], to("a", 0))}; n != [2]int{75, 0} {
			t.Errorf("%v started when the clock was back", n)
		}
	})
}

func restore(p *Pacer, kept []Kept) {
	for _, k := range kept {
		p.Restore(k)
	}
}
