package fleet

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/snapshot"
)

// names returns the ids of the gates that a gate knows.
func (g *testGate) names() string {
	var ids []string
	for _, other := range g.Status().Gates {
		ids = append(ids, other.ID)
	}
	return strings.Join(ids, " ")
}

// TestGates: gates know each other, one that ends is gone soon, and one that dies within 22 s.
func TestGates(t *testing.T) {
	inFleet(t, 3, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		time.Sleep(6 * time.Second) // fake clock
		for _, g := range gates {
			if got := g.names(); got != "gate0 gate1 gate2" {
				t.Errorf("%s knows %s", g.gate, got)
			}
		}
		late := newTestGate(t, "gate3", newLocalStore(), w, to(s))
		connected(late)
		time.Sleep(6 * time.Second) // fake clock
		if got := gates[0].names(); got != "gate0 gate1 gate2 gate3" {
			t.Error(got)
		}
		late.close()
		time.Sleep(6 * time.Second) // fake clock
		if got := gates[0].names(); got != "gate0 gate1 gate2" {
			t.Errorf("after the end of gate3: %s", got)
		}
		text := gates[1].sealer.seal("dead", kindGate, []byte("{}"))
		if _, _, err := s.announce(t.Context(), "dead", text, usual.keep); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second) // fake clock
		if got := gates[0].names(); got != "dead gate0 gate1 gate2" {
			t.Error(got)
		}
		time.Sleep(16 * time.Second) // fake clock
		if got := gates[0].names(); got != "gate0 gate1 gate2" {
			t.Errorf("22 s after its last announcement: %s", got)
		}
	})
}

// TestForgedGates: announcements that are not authentic, old or of another gate are counted, not listed.
func TestForgedGates(t *testing.T) {
	inFleet(t, 1, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		other, err := newSealer(bytes.Repeat([]byte("x"), MinKey), "robotsgate")
		if err != nil {
			t.Fatal(err)
		}
		own := gates[0].sealer
		old := *own
		old.now = func() time.Time { return time.Now().Add(-time.Hour) }
		for id, text := range map[string][]byte{
			"random": []byte("random"), "other key": other.seal("other key", kindGate, []byte("{}")), "of another": own.seal("gate9", kindGate, []byte("{}")),
			"old": old.seal("old", kindGate, []byte("{}")), "no JSON": own.seal("no JSON", kindGate, []byte("{")),
			"long": own.seal("long", kindGate, []byte(`{"version":"`+strings.Repeat("v", 100)+`"}`)),
		} {
			if _, _, err := s.announce(t.Context(), id, text, usual.keep); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(6 * time.Second) // fake clock
		if st := gates[0].Status(); len(st.Gates) != 1 || st.Rejected < 6 {
			t.Errorf("%+v", st)
		}
	})
}

// TestSameID: two gates with the same id, of which one is a copy, are warned of once.
func TestSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemoryServer()
		a := newTestGate(t, "same", newLocalStore(), newWeb(), to(s))
		defer a.close()
		time.Sleep(time.Second) // fake clock
		b := newTestGate(t, "same", newLocalStore(), newWeb(), to(s))
		defer b.close()
		time.Sleep(time.Minute) // fake clock
		synctest.Wait()
		if n := strings.Count(a.logged.String(), "has the same id"); n != 1 {
			t.Errorf("%d warnings: %s", n, a.logged)
		}
	})
}

// TestRestarted: a gate that starts again soon is not taken for a copy of itself.
func TestRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, own := newMemoryServer(), newLocalStore()
		for range 3 {
			g := newTestGate(t, "same", own, newWeb(), to(s))
			time.Sleep(7 * time.Second) // fake clock
			g.link.cancel()             // it can't take leave
			g.close()
			if strings.Contains(g.logged.String(), "same id") {
				t.Error(g.logged)
			}
		}
	})
}

// TestSharedLater: what a gate has fetched, or refreshed, while the store was away is known to the others
// when it is back.
func TestSharedLater(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		gates[1].decide(t, "b.example", "bot")
		time.Sleep(time.Minute) // fake clock
		s.set(faults{err: errTest})
		gates[0].decide(t, "a.example", "bot")
		w.changes("User-agent: *\nAllow: /\n")
		gates[0].refresh(t, "b.example")
		time.Sleep(time.Minute) // fake clock
		s.flush()
		s.set(faults{})
		time.Sleep(6 * time.Second) // fake clock
		if got := gates[1].decide(t, "a.example", "bot"); got != "deny rule store" {
			t.Errorf("fetched meanwhile: %s", got)
		}
		if got := gates[1].decide(t, "b.example", "bot"); got != "allow rule memory" {
			t.Errorf("refreshed meanwhile: %s", got)
		}
	})
}

// TestDiffer: different configurations show.
func TestDiffer(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		time.Sleep(6 * time.Second) // fake clock
		if gates[0].Status().Differ {
			t.Error("equal configurations differ")
		}
		gates[1].Use(Settings{Config: Config{Timeout: time.Second}, Hash: "changed"})
		time.Sleep(11 * time.Second) // fake clock
		for _, g := range gates {
			if !g.Status().Differ {
				t.Errorf("%s does not see that they differ", g.gate)
			}
		}
	})
}

// TestNoticeLost: the other gates learn of a refresh even if the store is lost between the set and
// its notice.
func TestNoticeLost(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		for _, g := range gates {
			g.decide(t, "a.example", "bot")
		}
		w.changes("User-agent: *\nAllow: /\n")
		time.Sleep(time.Minute) // fake clock
		gates[0].link.dial = to(&noNotices{memoryServer: s, until: time.Now().Add(5 * time.Second)})
		gates[0].link.lose(gates[0].link.current.Load(), errTest)
		connected(gates[0])
		gates[0].refresh(t, "a.example")
		time.Sleep(15 * time.Second) // fake clock
		if got := gates[1].decide(t, "a.example", "bot"); got != "allow rule memory" {
			t.Error(got)
		}
	})
}

// TestRefreshUnknown: a refresh reaches a gate that knows what neither the refreshing gate nor the store
// knows, also if the store is away at that moment.
func TestRefreshUnknown(t *testing.T) {
	for name, f := range map[string]faults{"store there": {}, "store away": {err: errTest}} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
				if got := gates[0].decideFor(t, gates[0].crawler, "a.example", "ConfiguredBot"); got != "deny rule fetch" {
					t.Error(got)
				}
				time.Sleep(time.Second) // fake clock
				s.flush()
				s.set(f)
				w.changes("User-agent: *\nAllow: /\n")
				gates[1].refresh(t, "a.example")
				if set, ok := gates[1].engine.Snapshots().Known(t.Context(), snapshot.Query{Scope: snapshot.Scope{Origin: "https://a.example"}, UserAgent: "ConfiguredBot"}); ok {
					t.Errorf("without an answer, the gate knows %+v", set)
				}
				if f != (faults{}) {
					time.Sleep(time.Second) // fake clock
					s.set(faults{})
					time.Sleep(5 * time.Second) // fake clock: until the gates have connected
				}
				time.Sleep(time.Second) // fake clock
				if got := gates[0].decideFor(t, gates[0].crawler, "a.example", "ConfiguredBot"); got != "allow rule fetch" {
					t.Error(got)
				}
			})
		})
	}
}

// TestRefreshMissed: a gate that was away for longer than notices are kept learns of a refresh when it needs the
// set.
func TestRefreshMissed(t *testing.T) {
	inFleetWith(t, slow, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		for _, g := range gates {
			g.decide(t, "a.example", "bot")
			g.decide(t, "b.example", "bot")
		}
		time.Sleep(time.Minute) // fake clock
		gates[1].link.dial = to(&cutServer{memoryServer: s, until: time.Now().Add(2 * time.Hour)})
		gates[1].link.lose(gates[1].link.current.Load(), errTest)
		w.changes("User-agent: *\nAllow: /\n")
		gates[0].refresh(t, "a.example")
		time.Sleep(2*time.Hour - time.Minute) // fake clock
		if got := gates[1].decide(t, "a.example", "bot"); got != "deny rule memory" {
			t.Errorf("while it is away: %s", got)
		}
		time.Sleep(time.Minute + 2*slow.announce) // fake clock
		fetched := w.count("a.example")
		if got := gates[1].decide(t, "a.example", "bot"); got != "allow rule store" || w.count("a.example") != fetched {
			t.Errorf("when it is back: %s, %d fetches", got, w.count("a.example"))
		}
		if got := gates[1].decide(t, "b.example", "bot"); got != "deny rule store" || w.count("b.example") != 1 {
			t.Errorf("another origin: %s, %d fetches", got, w.count("b.example"))
		}
		if got := gates[1].decide(t, "b.example", "bot"); got != "deny rule memory" {
			t.Errorf("again: %s", got)
		}
	})
}

// A cutServer can't be reached for some time.
type cutServer struct {
	*memoryServer
	until time.Time
}

func (s *cutServer) announce(ctx context.Context, id string, text []byte, keep time.Duration) (map[string][]byte, time.Time, error) {
	if time.Now().Before(s.until) {
		return nil, time.Time{}, errTest
	}
	return s.memoryServer.announce(ctx, id, text, keep)
}

// noNotices is a server that fails for notices, for some time.
type noNotices struct {
	*memoryServer
	until time.Time
}

func (s *noNotices) notify(ctx context.Context, notice []byte) error {
	if time.Now().Before(s.until) {
		return errTest
	}
	return s.memoryServer.notify(ctx, notice)
}

// TestBusy: what could not be shared since all places for calls were taken is shared soon after.
func TestBusy(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		gates[0].decide(t, "a.example", "bot")
		time.Sleep(time.Second) // fake clock
		set, _ := gates[0].own.Load(t.Context(), ofA)
		s.flush()
		const calls = 32 // at the same time
		if n := cap(gates[0].link.slots); n != calls {
			t.Fatalf("%d calls at the same time, want %d", n, calls)
		}
		for range calls {
			gates[0].link.slots <- struct{}{}
		}
		if err := gates[0].Save(t.Context(), map[string]snapshot.Set{ofA: set}); err != nil {
			t.Fatal(err)
		}
		for range calls {
			<-gates[0].link.slots
		}
		time.Sleep(5 * time.Second) // fake clock
		if got := gates[1].decide(t, "a.example", "bot"); got != "deny rule store" {
			t.Error(got)
		}
	})
}

// TestPutBack: an authentic value or notice that is older than the store keeps them is rejected.
func TestPutBack(t *testing.T) {
	inFleetWith(t, slow, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		w.answer = func(*http.Request) (int, string) { return 503, "" }
		gates[0].decide(t, "a.example", "bot")
		time.Sleep(time.Second) // fake clock
		name := gates[0].sealer.name(ofA)
		got, err := s.load(t.Context(), name, true)
		if err != nil || got.sealed == nil {
			t.Fatal(got, err)
		}
		notice := gates[0].sealer.seal(kindNotice, kindNotice, []byte(ofA))
		time.Sleep(25 * time.Hour) // fake clock
		if _, err := s.save(t.Context(), name, 0, got.value, time.Hour); err != nil {
			t.Fatal(err)
		}
		before := gates[1].Status().Rejected
		if set, ok := gates[1].Load(t.Context(), ofA); ok {
			t.Errorf("got %+v", set)
		}
		if err := s.notify(t.Context(), notice); err != nil {
			t.Fatal(err)
		}
		time.Sleep(slow.notices) // fake clock
		if n := gates[1].Status().Rejected - before; n != 2 {
			t.Errorf("%d values were rejected, want 2", n)
		}
	})
}

// TestPutBackOlder: an authentic value is put back as the newest version. A gate with a newer answer of its own ignores
// it, also when it starts again.
func TestPutBackOlder(t *testing.T) {
	inFleet(t, 1, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		gate, name := gates[0], gates[0].sealer.name(ofA)
		w.changes("User-agent: *\nAllow: /\n")
		gate.decide(t, "a.example", "bot")
		time.Sleep(time.Minute) // fake clock
		old, err := s.load(t.Context(), name, true)
		if err != nil || old.body == nil {
			t.Fatal(old, err)
		}
		w.changes("User-agent: *\nDisallow: /\n")
		gate.refresh(t, "a.example")
		time.Sleep(time.Minute) // fake clock
		last, err := s.load(t.Context(), name, false)
		if err != nil || last.version <= old.version {
			t.Fatal(last, err)
		}
		if saved, err := s.save(t.Context(), name, last.version, old.value, time.Hour); !saved || err != nil {
			t.Fatal(saved, err)
		}
		if got := gate.decide(t, "a.example", "bot"); got != "deny rule memory" {
			t.Error(got)
		}
		again := newTestGate(t, "gate1", gate.own, w, to(s))
		defer again.close()
		connected(again)
		if got := again.decide(t, "a.example", "bot"); got != "deny rule store" || again.Status().Rejected > 0 {
			t.Errorf("after a restart: %s, %d values were rejected", got, again.Status().Rejected)
		}
	})
}

// TestEmptied: an emptied store is noticed, and paces are cautious for a while.
func TestEmptied(t *testing.T) {
	inFleet(t, 3, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		time.Sleep(21 * time.Second) // fake clock: announcements are after 20 s and 25 s
		if state, _ := gates[0].clock.now(); state != clockReady {
			t.Fatalf("state %v", state)
		}
		s.flush()
		time.Sleep(5 * time.Second) // fake clock
		if state, _ := gates[0].clock.now(); state != clockCautious || gates[0].clock.Alone() != 3 {
			t.Errorf("state %v, factor %d", state, gates[0].clock.Alone())
		}
		time.Sleep(10 * time.Second) // fake clock
		if state, _ := gates[0].clock.now(); state != clockReady {
			t.Errorf("state %v", state)
		}
	})
}

// TestClocksDiffer: a clock that differs from the store's is warned of once, until it is right again.
func TestClocksDiffer(t *testing.T) {
	inFleet(t, 1, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		for _, test := range []struct {
			offset   time.Duration
			warnings int
		}{{0, 0}, {500 * time.Millisecond, 0}, {2 * time.Second, 1}, {3 * time.Second, 1}, {0, 1}, {-2 * time.Second, 2}} {
			s.mu.Lock()
			s.offset = test.offset
			s.mu.Unlock()
			time.Sleep(12 * time.Second) // fake clock
			if n := strings.Count(gates[0].logged.String(), "clock differs"); n != test.warnings {
				t.Errorf("offset %v: %d warnings, want %d", test.offset, n, test.warnings)
			}
		}
	})
}
