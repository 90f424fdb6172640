package fleet

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
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
		a, b := newTestGate(t, "same", newLocalStore(), newWeb(), to(s)), newTestGate(t, "same", newLocalStore(), newWeb(), to(s))
		defer a.close()
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

// TestSharedLater: what a gate has fetched, or refreshed, while the server was away is known to the others
// when it is back.
func TestSharedLater(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, s *memoryServer, w *web, gates []*testGate) {
		gates[1].decide(t, "b.example", "bot")
		time.Sleep(time.Hour) // fake clock
		s.set(faults{err: errTest})
		gates[0].decide(t, "a.example", "bot")
		w.mu.Lock()
		w.answer = func(*http.Request) (int, string) { return 200, "User-agent: *\nAllow: /\n" }
		w.mu.Unlock()
		target, err := policy.ParseURL("https://b.example/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gates[0].engine.Refresh(t.Context(), policy.Request{Target: target, UserAgent: "bot"}); err != nil {
			t.Fatal(err)
		}
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
		gates[1].Use(time.Second, nil, "changed")
		time.Sleep(11 * time.Second) // fake clock
		for _, g := range gates {
			if !g.Status().Differ {
				t.Errorf("%s does not see that they differ", g.gate)
			}
		}
	})
}
