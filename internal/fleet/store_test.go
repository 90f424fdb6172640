package fleet

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/snapshot"
)

// TestOneFetch: however many gates ask at once, an origin is asked once, and its answer is on the disk
// of each, with the gate that has fetched it.
func TestOneFetch(t *testing.T) {
	inFleet(t, 8, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		var all sync.WaitGroup
		for _, g := range gates {
			for range 3 {
				all.Go(func() {
					if got := g.decide(t, "a.example", "bot"); !strings.HasPrefix(got, "deny rule") {
						t.Error(got)
					}
				})
			}
		}
		all.Wait()
		time.Sleep(time.Second) // fake clock: until it is saved
		if n := w.count("a.example"); n != 1 {
			t.Errorf("%d fetches", n)
		}
		by := map[string]int{}
		for _, g := range gates {
			set, ok := g.own.Load(t.Context(), ofA)
			if !ok || string(set.Body) == "" || set.Good == nil {
				t.Fatalf("%s: %+v, %v", g.gate, set, ok)
			}
			by[set.Good.By]++
		}
		if len(by) != 2 || by[""] != 1 {
			t.Errorf("the answers were fetched by %v", by)
		}
	})
}

// TestKnownByAnother: a gate that starts late has what others know, also stale copies and outages.
func TestKnownByAnother(t *testing.T) {
	inFleetWith(t, slow, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		a, b := gates[0], gates[1]
		a.decide(t, "a.example", "bot")
		time.Sleep(25 * time.Hour) // fake clock
		w.answer = func(*http.Request) (int, string) { return 503, "" }
		if got := a.decide(t, "a.example", "bot"); got != "deny rule fetch" {
			t.Error(got)
		}
		time.Sleep(time.Second) // fake clock
		if got := b.decide(t, "a.example", "bot"); got != "deny rule store" {
			t.Errorf("by the stale copy: %s", got)
		}
		if n := w.count("a.example"); n != 2 {
			t.Errorf("%d fetches", n)
		}
	})
}

// TestKeptForOneToken: answers that bind one product token are kept for it.
func TestKeptForOneToken(t *testing.T) {
	inFleet(t, 3, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		w.answer = func(r *http.Request) (int, string) {
			if r.UserAgent() == "good" {
				return 200, "Vary\nUser-agent: *\nAllow: /\n"
			}
			return 200, "Vary\nUser-agent: *\nDisallow: /\n"
		}
		for i, g := range gates {
			for agent, want := range map[string]string{"good": "allow rule", "bad": "deny rule"} {
				if got := g.decideAs(t, "a.example", agent); !strings.HasPrefix(got, want) {
					t.Errorf("gate %d, %s: %s", i, agent, got)
				}
			}
			time.Sleep(time.Second) // fake clock
		}
		if w.by["good"] != 1 || w.by["bad"] != 1 {
			t.Errorf("fetches: %v", w.by)
		}
	})
}

// TestKeptForOneEntry: a 403 to one of two crawlers with the same product token decides for this crawler at all gates,
// and for the other one at none.
func TestKeptForOneEntry(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		w.answer = func(r *http.Request) (int, string) {
			if r.Header.Get("Entry") == "first" {
				return 403, ""
			}
			return 200, "User-agent: *\nDisallow: /\n"
		}
		for i, g := range gates {
			var known []*policy.Crawler
			for _, name := range []string{"first", "second"} {
				known = append(known, &policy.Crawler{Name: name, Tokens: []string{"NewsBot"}, KeyID: name, Wrap: func(t http.RoundTripper) http.RoundTripper {
					return roundTrip(func(r *http.Request) (*http.Response, error) {
						r.Header.Set("Entry", name)
						return t.RoundTrip(r)
					})
				}})
			}
			g.engine = g.engine.Reconfigured(policy.Config{Crawlers: policy.Crawlers{Known: known}, Robots: policy.DefaultRobots(), Transport: w, Shared: true})
			for j, want := range []string{"allow unavailable", "deny rule"} {
				if got := g.decideFor(t, known[j], "a.example", "NewsBot"); !strings.HasPrefix(got, want) {
					t.Errorf("gate %d, %s: got %s, want %s", i, known[j].Name, got, want)
				}
			}
			time.Sleep(time.Second) // fake clock
		}
		if n := w.count("a.example"); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestOneFetchForOneToken: a gate that waits for another one's answer, which binds one crawler only, then fetches
// at most what no other gate fetches.
func TestOneFetchForOneToken(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		w.changes("Vary\nUser-agent: *\nDisallow: /\n")
		w.took = time.Second // longer than a gate waits before it asks for the permission again
		var all sync.WaitGroup
		ask := func(g *testGate, agent string) {
			all.Go(func() {
				if got := g.decideAs(t, "a.example", agent); !strings.HasPrefix(got, "deny rule") {
					t.Errorf("%s: %s", agent, got)
				}
			})
		}
		ask(gates[0], "OneBot")
		synctest.Wait()
		ask(gates[0], "TwoBot") // fetches when the answer to OneBot is there
		ask(gates[1], "TwoBot") // waits for the permission that gates[0] has for OneBot
		all.Wait()
		if w.by["OneBot"] != 1 || w.by["TwoBot"] != 1 {
			t.Errorf("fetches by crawler: %v, want one for each", w.by)
		}
	})
}

// TestStoppedWhileFetching: a gate that was stopped while it fetched, so that its permission ended and another gate
// fetched, decides by what the other one got, although its own fetch failed.
func TestStoppedWhileFetching(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		want   string
	}{{200, "User-agent: *\nDisallow: /private\n", "deny rule store"}, {404, "", "allow unavailable store"}, {403, "", "allow unavailable store"}} {
		inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
			var stopped atomic.Bool
			w.answer = func(r *http.Request) (int, string) {
				if stopped.CompareAndSwap(false, true) {
					<-r.Context().Done()
					return 0, ""
				}
				return test.status, test.body
			}
			var waiting sync.WaitGroup
			waiting.Go(func() {
				if got := gates[0].decide(t, "a.example", "bot"); got != test.want {
					t.Errorf("the request that waited: got %s, want %s", got, test.want)
				}
			})
			time.Sleep(time.Second) // fake clock
			s.mu.Lock()
			s.remove(gates[0].sealer.name(ofA) + ":l") // the permission has ended
			s.mu.Unlock()
			if got, want := gates[1].decide(t, "a.example", "bot"), strings.Replace(test.want, "store", "fetch", 1); got != want {
				t.Errorf("the other gate: got %s, want %s", got, want)
			}
			waiting.Wait()
			if got, want := gates[0].decide(t, "a.example", "bot"), strings.Replace(test.want, "store", "memory", 1); got != want {
				t.Errorf("the next request: got %s, want %s", got, want)
			}
			if n := w.count("a.example"); n != 2 {
				t.Errorf("%d fetches, want 2", n)
			}
		})
	}
}

// TestStoppedBeforeAnswer: a gate that was stopped before it read the answer to its fetch decides by what another gate
// has fetched meanwhile: its own answer is the older one.
func TestStoppedBeforeAnswer(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		var stopped atomic.Bool
		w.answer = func(r *http.Request) (int, string) {
			if stopped.CompareAndSwap(false, true) {
				time.Sleep(4 * time.Second) // fake clock
				return 200, "User-agent: *\nAllow: /\n"
			}
			return 200, "User-agent: *\nDisallow: /private\n"
		}
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if got, want := gates[0].decide(t, "a.example", "bot"), "deny rule store"; got != want {
				t.Errorf("the request that waited: got %s, want %s", got, want)
			}
		})
		time.Sleep(time.Second) // fake clock
		s.mu.Lock()
		s.remove(gates[0].sealer.name(ofA) + ":l") // the permission has ended
		s.mu.Unlock()
		if got, want := gates[1].decide(t, "a.example", "bot"), "deny rule fetch"; got != want {
			t.Errorf("the other gate: got %s, want %s", got, want)
		}
		waiting.Wait()
	})
}

// TestTooLong: of a robots.txt that is too long to share, the refresh is shared.
func TestTooLong(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		const key = ofA
		for _, g := range gates {
			g.decide(t, "a.example", "bot")
		}
		time.Sleep(time.Second) // fake clock
		for name, set := range map[string]snapshot.Set{
			"body":   {Good: &snapshot.Snapshot{Status: 200}, Body: make([]byte, maxBody+1)},
			"record": {Good: &snapshot.Snapshot{Status: 200, URL: strings.Repeat("r", maxSet)}},
		} {
			now := time.Now()
			set.Good.Fetched, set.Good.SHA256, set.Refreshed = now, snapshot.Digest(string(set.Body)), now
			if err := gates[0].Save(t.Context(), map[string]snapshot.Set{key: set}); err != nil {
				t.Fatal(err)
			}
			got, _, err := gates[1].read(t.Context(), key, true)
			if err != nil || !got.Refreshed.Equal(now) || got.Good == nil || got.Good.Fetched.Equal(now) {
				t.Errorf("%s: the store has %+v, %v", name, got, err)
			}
			time.Sleep(time.Second) // fake clock
			if got := gates[1].decide(t, "a.example", "bot"); got != "deny rule fetch" {
				t.Errorf("%s: the other gate: %s", name, got)
			}
			time.Sleep(time.Second) // fake clock
		}
	})
}

// TestRefresh: a refresh on one gate reaches the others within a second.
func TestRefresh(t *testing.T) {
	inFleet(t, 3, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		for _, g := range gates {
			g.decide(t, "a.example", "bot")
		}
		w.changes("User-agent: *\nAllow: /\n")
		time.Sleep(time.Minute) // fake clock
		gates[1].refresh(t, "a.example")
		time.Sleep(time.Second) // fake clock
		for i, g := range gates {
			if got := g.decide(t, "a.example", "bot"); got != "allow rule memory" {
				t.Errorf("gate %d: %s", i, got)
			}
		}
		if n := w.count("a.example"); n != 2 {
			t.Errorf("%d fetches", n)
		}
	})
}

// TestKilled: a gate that dies while it fetches delays the others by 4 s at most.
func TestKilled(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		// The lease of a gate that is gone.
		if _, err := s.acquire(t.Context(), gates[0].sealer.name(ofA), "dead", leaseTime); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		var all sync.WaitGroup
		for _, g := range gates {
			all.Go(func() {
				if got := g.decide(t, "a.example", "bot"); !strings.HasPrefix(got, "deny rule") {
					t.Error(got)
				}
			})
		}
		all.Wait()
		if took := time.Since(begun); took < leaseTime || took > leaseTime+time.Second {
			t.Errorf("decided after %v", took)
		}
		if n := w.count("a.example"); n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
}

// TestSlowOrigin: gates wait for a gate that fetches, for as long as that may take, and take over that
// there was no answer.
func TestSlowOrigin(t *testing.T) {
	inFleet(t, 3, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		w.took = time.Hour
		var all sync.WaitGroup
		begun := time.Now()
		for _, g := range gates {
			all.Go(func() {
				if got := g.decide(t, "a.example", "bot"); !strings.HasPrefix(got, "deny unreachable") {
					t.Error(got)
				}
			})
		}
		all.Wait()
		if took, n := time.Since(begun), w.count("a.example"); n != 1 || took > 11*time.Second {
			t.Errorf("%d fetches, decided after %v", n, took)
		}
	})
}

// TestStaleForChanges: the time to live of values follows a changed robots.stale_for.
func TestStaleForChanges(t *testing.T) {
	inFleet(t, 1, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		for _, staleFor := range []time.Duration{100 * time.Hour, 10 * time.Hour} {
			gates[0].Use(Settings{Config: Config{Timeout: time.Second}, StaleFor: staleFor})
			host := staleFor.String() + ".example"
			gates[0].decide(t, host, "bot")
			saved := time.Now()
			time.Sleep(time.Second) // fake clock
			s.mu.Lock()
			left := s.snapshots[gates[0].sealer.name("https://"+host+" robotsgate/0")].expires.Sub(saved)
			s.mu.Unlock()
			if want := staleFor + 24*time.Hour; left.Round(time.Minute) != want {
				t.Errorf("robots.stale_for %v: the store keeps the copy for %v, want %v", staleFor, left, want)
			}
		}
	})
}

// TestAway: whatever happens to the store, gates go on alone, and no request waits for it longer than
// the time-out, once.
func TestAway(t *testing.T) {
	for name, f := range map[string]faults{
		"hung": {hang: true}, "answers lost": {lose: true}, "failing": {err: errTest}, "read-only": {readOnly: true},
	} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
				gates[0].decide(t, "known.example", "bot")
				s.set(f)
				for i, g := range gates {
					for n := range 3 {
						begun := time.Now()
						if got := g.decide(t, fmt.Sprint("cold", n, ".example"), "bot"); got != "deny rule fetch" {
							t.Errorf("gate %d: %s", i, got)
						}
						if took := time.Since(begun); took > w.took+110*time.Millisecond || n > 0 && took > w.took {
							t.Errorf("gate %d, request %d: decided after %v", i, n, took)
						}
					}
				}
				if got := gates[0].decide(t, "known.example", "bot"); got != "deny rule memory" {
					t.Error(got)
				}
				time.Sleep(10 * time.Minute) // fake clock
				for _, g := range gates {
					if st := g.Status(); st.State != "away" || st.Error == "" {
						t.Errorf("%+v", st)
					}
				}
				s.set(faults{})
				time.Sleep(10 * time.Second) // fake clock
				for _, g := range gates {
					if st := g.Status(); st.State != "connected" {
						t.Errorf("%+v", st)
					}
				}
				gates[0].decide(t, "again.example", "bot")
				time.Sleep(time.Second) // fake clock
				if got := gates[1].decide(t, "again.example", "bot"); got != "deny rule store" {
					t.Error(got)
				}
			})
		})
	}
}

var errTest = fmt.Errorf("OOM command not allowed")

// TestEvidenceDoesNotWait: a gate keeps what it decides by on its own disk at once, though the store does not answer.
func TestEvidenceDoesNotWait(t *testing.T) {
	inFleet(t, 1, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		s.set(faults{hang: true})
		begun, done := time.Now(), make(chan error, 1)
		now := &snapshot.Snapshot{Status: 404, Fetched: begun}
		go func() {
			done <- gates[0].Save(context.Background(), map[string]snapshot.Set{ofA: {Last: now}})
		}()
		synctest.Wait()
		if set, ok := gates[0].own.Load(t.Context(), ofA); !ok || set.Last != now {
			t.Errorf("the gate has kept %+v", set)
		}
		if err := <-done; err != nil || time.Since(begun) != 100*time.Millisecond {
			t.Errorf("saved after %v, %v; the store should have been waited for", time.Since(begun), err)
		}
	})
}

// TestForged: a value that does not fit is treated as absent, and counted.
func TestForged(t *testing.T) {
	const key = ofA
	change := func(f func(s *memoryServer, name string)) func(*memoryServer, string) {
		return func(s *memoryServer, name string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f(s, name)
		}
	}
	for name, forge := range map[string]func(*memoryServer, string){
		"the wrong type":                        func(s *memoryServer, name string) { s.setWrong(name + ":s") },
		"a version of values that is not known": change(func(s *memoryServer, name string) { s.snapshots[name].sealed[0]++ }),
		"one bit":                               change(func(s *memoryServer, name string) { s.snapshots[name].sealed[40] ^= 1 }),
		"no body":                               change(func(s *memoryServer, name string) { s.snapshots[name].body = nil }),
		"a cut record":                          change(func(s *memoryServer, name string) { s.snapshots[name].sealed = s.snapshots[name].sealed[:20] }),
		"an empty one":                          change(func(s *memoryServer, name string) { s.snapshots[name].sealed = []byte{} }),
		"another origin's": change(func(s *memoryServer, name string) {
			for other, v := range s.snapshots {
				if other != name {
					s.snapshots[name].stored = v.stored
				}
			}
		}),
		"the body as the record": change(func(s *memoryServer, name string) { s.snapshots[name].sealed = s.snapshots[name].body }),
	} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
				gates[0].decide(t, "a.example", "bot")
				gates[0].decide(t, "b.example", "bot")
				time.Sleep(time.Second) // fake clock
				forge(s, gates[0].sealer.name(key))
				if got := gates[1].decide(t, "a.example", "bot"); got != "deny rule fetch" {
					t.Error(got)
				}
				if gates[1].Status().Rejected == 0 {
					t.Error("the value was not counted")
				}
				time.Sleep(time.Second) // fake clock
				if set, _, err := gates[0].read(t.Context(), key, true); err != nil || set.Good == nil || len(set.Body) == 0 {
					t.Errorf("it was not replaced: %v", err)
				}
			})
		})
	}
}

// TestInvalid: an authentic set with a value that no gate writes is rejected as a whole.
func TestInvalid(t *testing.T) {
	f := &Fleet{gate: "g", now: time.Now}
	now := time.Now()
	good := func(change func(*snapshot.Snapshot)) snapshot.Set {
		s := &snapshot.Snapshot{Status: 200, Fetched: now, SHA256: "x"}
		change(s)
		return snapshot.Set{Good: s, Last: s}
	}
	for name, set := range map[string]snapshot.Set{
		"future":         good(func(s *snapshot.Snapshot) { s.Fetched = now.Add(2 * time.Minute) }),
		"future failure": good(func(s *snapshot.Snapshot) { s.Since = now.Add(2 * time.Minute) }),
		"too old":        good(func(s *snapshot.Snapshot) { s.Fetched = now.Add(-2 * maxAge) }),
		"failures":       good(func(s *snapshot.Snapshot) { s.Failures = -1 }),
		"retry":          good(func(s *snapshot.Snapshot) { s.Retry = -1 }),
		"status":         good(func(s *snapshot.Snapshot) { s.Status = 1000 }),
		"refreshed":      {Refreshed: now.Add(time.Hour)},
	} {
		if got, err := f.decode(f.encode(set)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := f.decode(f.encode(good(func(*snapshot.Snapshot) {}))); err != nil {
		t.Error(err)
	}
}

// TestSize: what is stored for an origin beside the body is bounded.
func TestSize(t *testing.T) {
	f := &Fleet{gate: "0123456789abcdef0123456789abcdef", now: time.Now}
	long := &snapshot.Snapshot{URL: "https://a.example/" + strings.Repeat("r", 200), Status: 503, Error: strings.Repeat("e", 5000), Fetched: time.Now(), Since: time.Now(), ETag: strings.Repeat("t", 60)}
	text := f.encode(snapshot.Set{Good: long, Last: new(*long)})
	if len(text) == 0 || len(text) > maxSet {
		t.Fatalf("%d bytes", len(text))
	}
	if got, err := f.decode(text); err != nil || got.Good == nil || got.Last == nil {
		t.Errorf("%+v, %v", got, err)
	}
	long.URL = strings.Repeat("r", maxSet)
	if text := f.encode(snapshot.Set{Good: long}); text != nil {
		t.Errorf("%d bytes", len(text))
	}
}
