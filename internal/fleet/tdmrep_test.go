package fleet

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

// readsTDMRep makes a gate ask origins for their tdmrep.json too.
func (g *testGate) readsTDMRep(w *web) {
	robots := policy.DefaultRobots()
	g.engine = g.engine.Reconfigured(policy.Config{
		Crawlers: policy.Crawlers{Known: []*policy.Crawler{g.crawler}}, Robots: robots, Usage: policy.Usage{TDMRep: true}, Transport: w, Store: g, Shared: true,
	})
}

// reservation returns what a host's tdmrep.json states for a crawler, and in which state it is.
func (g *testGate) reservation(t *testing.T, host, agent string) string {
	t.Helper()
	target, err := canonical.ParseURL("https://" + host + "/public")
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.engine.Decide(t.Context(), policy.Request{Target: target, UserAgent: agent})
	switch {
	case err != nil:
		return err.Error()
	case !d.Allow:
		return "denied"
	case d.TDMRep == nil:
		return "none"
	}
	return strings.TrimSpace(string(d.TDMRep.State) + " " + d.Stated.Values()["tdm"])
}

// tdmrepWeb answers requests for a tdmrep.json, of which it counts those since the last check.
type tdmrepWeb struct {
	gates  []*testGate
	asked  atomic.Int32
	status atomic.Int32
	body   atomic.Value
}

func newTDMRepWeb(w *web, gates []*testGate, body string) *tdmrepWeb {
	x := &tdmrepWeb{gates: gates}
	x.answers(200, body)
	w.answer = func(r *http.Request) (int, string) {
		if r.URL.Path != "/.well-known/tdmrep.json" {
			return 404, ""
		}
		x.asked.Add(1)
		return int(x.status.Load()), x.body.Load().(string)
	}
	for _, g := range gates {
		g.readsTDMRep(w)
	}
	return x
}

func (x *tdmrepWeb) answers(status int32, body string) {
	x.status.Store(status)
	x.body.Store(body)
}

// check asks all gates at once, as two crawlers.
func (x *tdmrepWeb) check(t *testing.T, when, want string, fetches int32) {
	t.Helper()
	var all sync.WaitGroup
	for _, g := range x.gates {
		for _, agent := range []string{"abot/1.0", "bbot/1.0"} {
			all.Go(func() {
				if got := g.reservation(t, "a.example", agent); got != want {
					t.Errorf("%s: %s: got %s, want %s", when, g.gate, got, want)
				}
			})
		}
	}
	all.Wait()
	time.Sleep(time.Second) // fake clock: until it is saved
	if n := x.asked.Swap(0); n != fetches {
		t.Errorf("%s: %d fetches, want %d", when, n, fetches)
	}
}

const (
	reserved    = `[{"location": "/", "tdm-reservation": 1}]`
	notReserved = `[{"location": "/", "tdm-reservation": 0}]`
)

// TestTDMRep: the fleet asks an origin once for its tdmrep.json, whichever crawlers want it; each gate keeps it
// as evidence. A stale copy and an outage are shared as those of robots.txt are.
func TestTDMRep(t *testing.T) {
	inFleetWith(t, slow, 4, func(t *testing.T, _ *memoryServer, w *web, gates []*testGate) {
		x := newTDMRepWeb(w, gates, reserved)
		x.check(t, "at first", "fresh n", 1)
		key := snapshot.Scope{Origin: "https://a.example", TDMRep: true, Asker: "robotsgate/0"}.Key()
		for _, g := range gates {
			if set, ok := g.own.Load(t.Context(), key); !ok || set.Good == nil || snapshot.Digest(string(set.Body)) != set.Good.SHA256 {
				t.Errorf("%s has not kept it: %+v", g.gate, set)
			}
		}
		time.Sleep(25 * time.Hour) // fake clock
		x.answers(503, "")
		x.check(t, "during an outage", "stale n", 1)
		x.check(t, "before the next try", "stale n", 0)
		time.Sleep(time.Hour) // fake clock
		x.answers(404, "")
		x.check(t, "when it is removed", "unavailable", 1)
	})
}

// TestTDMRepRefresh: after a refresh of one gate all decide by the new tdmrep.json.
func TestTDMRepRefresh(t *testing.T) {
	inFleet(t, 3, func(t *testing.T, _ *memoryServer, w *web, gates []*testGate) {
		x := newTDMRepWeb(w, gates, reserved)
		x.check(t, "at first", "fresh n", 1)
		x.answers(200, notReserved)
		x.check(t, "before the refresh", "fresh n", 0)
		gates[1].refresh(t, "a.example")
		time.Sleep(time.Second) // fake clock
		x.check(t, "after the refresh", "fresh y", 1)
	})
}
