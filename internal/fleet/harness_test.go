package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy"
	"robotsgate/policy/pace"
)

var testKey = bytes.Repeat([]byte("k"), MinKey)

// A localStore is a gate's own store, in memory. It survives the gate.
type localStore struct {
	mu      sync.Mutex
	records map[string]policy.Record
}

func newLocalStore() *localStore { return &localStore{records: map[string]policy.Record{}} }

func (l *localStore) Load(_ context.Context, key string) (policy.Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rec, ok := l.records[key]
	return rec, ok
}

func (l *localStore) Save(_ context.Context, records map[string]policy.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.records, records)
	maps.DeleteFunc(l.records, func(_ string, rec policy.Record) bool { return rec.Empty() })
	return nil
}

func (l *localStore) Acquire(context.Context, string) (func(), bool) { return nil, false }

func (l *localStore) Origins(context.Context, string, string, int) ([]string, string, error) {
	return nil, "", nil
}

// A web answers requests for robots.txt.
type web struct {
	mu      sync.Mutex
	took    time.Duration // for one answer
	answer  func(r *http.Request) (status int, body string)
	fetches map[string]int // by origin
	by      map[string]int // and by User-Agent
}

func newWeb() *web {
	return &web{
		took: 100 * time.Millisecond, fetches: map[string]int{}, by: map[string]int{},
		answer: func(r *http.Request) (int, string) { return 200, "User-agent: *\nDisallow: /private\n" },
	}
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.fetches[r.URL.Host]++
	w.by[r.UserAgent()]++
	took, answer := w.took, w.answer
	w.mu.Unlock()
	select {
	case <-time.After(took):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	status, body := answer(r)
	if status == 0 {
		return nil, fmt.Errorf("connection refused")
	}
	h := http.Header{}
	if text, ok := strings.CutPrefix(body, "Vary\n"); ok {
		h.Set("Vary", "User-Agent")
		body = text
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
}

// count returns the number of fetches from a host.
func (w *web) count(host string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fetches[host]
}

// A testGate is a gate of a fleet: what decides, without a proxy.
type testGate struct {
	*Fleet
	engine *policy.Engine
	own    *localStore
	logged *gatetest.Output
}

// newTestGate returns a gate that reaches a server through calls of dial.
func newTestGate(t testing.TB, id string, own *localStore, w http.RoundTripper, dial func(context.Context) (server, error)) *testGate {
	t.Helper()
	robots := policy.DefaultRobots()
	robots.CacheBytes = 8 << 20
	logged := new(gatetest.Output)
	log := slog.New(slog.NewTextHandler(logged, nil))
	o := Options{Key: testKey, Prefix: "robotsgate", Timeout: 100 * time.Millisecond, Local: own, Robots: robots, Log: log, Gate: id, Version: "1", Config: "c"}
	f, err := newFleet(o)
	if err != nil {
		t.Fatal(err)
	}
	f.connect(o, dial)
	engine, err := policy.New(policy.Config{Robots: robots, Transport: w, Store: f, Shared: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	f.Start(engine.Learn, func() []pace.Reservation { return nil })
	return &testGate{f, engine, own, logged}
}

func to(s server) func(context.Context) (server, error) {
	return func(context.Context) (server, error) { return s, nil }
}

func (g *testGate) close() {
	g.engine.Close()
	g.Fleet.Close()
}

// decide returns whether a crawler may fetch /private of a host, why, and where that was found.
func (g *testGate) decide(t testing.TB, host, agent string) string {
	t.Helper()
	target, err := policy.ParseURL("https://" + host + "/private")
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.engine.Decide(context.Background(), policy.Request{Target: target, UserAgent: agent})
	if err != nil {
		return err.Error()
	}
	answer := "deny"
	if d.Allow {
		answer = "allow"
	}
	return fmt.Sprintf("%s %s %s", answer, d.Reason, d.Robots.From)
}

// connected waits until the gates have connected.
func connected(gates ...*testGate) {
	for _, g := range gates {
		for !g.link.up() {
			time.Sleep(time.Millisecond) // fake clock
		}
	}
	synctest.Wait()
}
