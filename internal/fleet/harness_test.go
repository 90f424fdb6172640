package fleet

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
)

var testKey = bytes.Repeat([]byte("k"), MinKey)

// A localStore is a gate's own store, in memory. It survives the gate.
type localStore struct {
	mu   sync.Mutex
	sets map[string]snapshot.Set
}

func newLocalStore() *localStore { return &localStore{sets: map[string]snapshot.Set{}} }

func (l *localStore) Load(_ context.Context, key string) (snapshot.Set, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set, ok := l.sets[key]
	return set, ok
}

func (l *localStore) Save(_ context.Context, sets map[string]snapshot.Set) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.sets, sets)
	maps.DeleteFunc(l.sets, func(_ string, set snapshot.Set) bool { return set.Empty() })
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

// changes makes the web answer with this robots.txt.
func (w *web) changes(robots string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(*http.Request) (int, string) { return 200, robots }
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
	engine  *policy.Engine
	crawler *policy.Crawler // the only configured one
	own     *localStore
	logged  *gatetest.Output
}

// slow are intervals for tests over hours.
var slow = intervals{announce: 5 * time.Minute, keep: 15 * time.Minute, notices: time.Minute}

// newTestGate returns a gate that reaches its store through calls of dial.
func newTestGate(t testing.TB, id string, own *localStore, w http.RoundTripper, dial func(context.Context) (server, error)) *testGate {
	t.Helper()
	return newTestGateWith(t, usual, id, own, w, dial)
}

func newTestGateWith(t testing.TB, r intervals, id string, own *localStore, w http.RoundTripper, dial func(context.Context) (server, error)) *testGate {
	t.Helper()
	robots := policy.DefaultRobots()
	robots.CacheBytes = 8 << 20
	logged := new(gatetest.Output)
	log := slog.New(slog.NewTextHandler(logged, nil))
	o := Options{Key: testKey, Local: own, Log: log, Gate: id, Version: "1", Settings: Settings{Config: Default(), StaleFor: robots.StaleFor, Hash: "c"}}
	f, err := newFleet(o)
	if err != nil {
		t.Fatal(err)
	}
	f.intervals = r
	f.connect(o, dial)
	crawler := &policy.Crawler{Name: "configured", Tokens: []string{"ConfiguredBot"}}
	engine, err := policy.New(policy.Config{Crawlers: policy.Crawlers{Known: []*policy.Crawler{crawler}}, Robots: robots, Transport: w, Store: f, Shared: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	f.Start(engine.Snapshots(), func() []pace.Reservation { return nil })
	return &testGate{f, engine, crawler, own, logged}
}

func to(s server) func(context.Context) (server, error) {
	return func(context.Context) (server, error) { return s, nil }
}

// inFleet runs a test with some gates that share a store in memory.
func inFleet(t *testing.T, gates int, test func(t *testing.T, s *memoryServer, w *web, gates []*testGate)) {
	inFleetWith(t, usual, gates, test)
}

func inFleetWith(t *testing.T, r intervals, gates int, test func(t *testing.T, s *memoryServer, w *web, gates []*testGate)) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newMemoryServer(), newWeb()
		var all []*testGate
		for i := range gates {
			g := newTestGateWith(t, r, fmt.Sprint("gate", i), newLocalStore(), w, to(s))
			defer g.close()
			all = append(all, g)
		}
		connected(all...)
		test(t, s, w, all)
	})
}

func (g *testGate) close() {
	g.engine.Close()
	g.Fleet.Close()
}

// refresh asks the gate for a new copy of a host's robots.txt.
func (g *testGate) refresh(t testing.TB, host string) {
	t.Helper()
	target, err := canonical.ParseURL("https://" + host + "/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.engine.Refresh(t.Context(), policy.Request{Target: target, UserAgent: "bot"}); err != nil {
		t.Fatal(err)
	}
}

// decide returns whether a crawler may fetch /private of a host, why, and where that was found.
func (g *testGate) decide(t testing.TB, host, agent string) string {
	t.Helper()
	return g.decideFor(t, nil, host, agent)
}

// decideAs is decide for a crawler with this product token, which is the User-Agent of its fetches.
func (g *testGate) decideAs(t testing.TB, host, token string) string {
	t.Helper()
	return g.decideFor(t, &policy.Crawler{Name: token, Tokens: []string{token}}, host, token)
}

// ofA is the key of what is known for all clients but the configured crawler.
const ofA = "https://a.example robotsgate/0"

func (g *testGate) decideFor(t testing.TB, crawler *policy.Crawler, host, agent string) string {
	t.Helper()
	target, err := canonical.ParseURL("https://" + host + "/private")
	if err != nil {
		t.Fatal(err)
	}
	d, err := g.engine.Decide(context.Background(), policy.Request{Target: target, Crawler: crawler, UserAgent: agent})
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

// helloAnswer is what a server says at first, when it is in standalone mode.
const helloAnswer = "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"

// answering returns the address of a server that answers each command with the next answer, in which %d is
// the server's port. After the last it repeats the last.
func answering(t *testing.T, answers []string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	serve := func(conn net.Conn) {
		defer conn.Close()
		commands := bufio.NewReader(conn)
		for sent := 0; readCommand(commands) == nil; sent++ {
			answer := answers[min(sent, len(answers)-1)]
			if _, err := io.WriteString(conn, strings.ReplaceAll(answer, ":%d", ":"+port)); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}

// readCommand reads a list of values.
func readCommand(r *bufio.Reader) error {
	var values, length int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &values); err != nil {
		return err
	}
	for range values {
		if _, err := fmt.Fscanf(r, "$%d\r\n", &length); err != nil {
			return err
		}
		if _, err := r.Discard(length + len("\r\n")); err != nil {
			return err
		}
	}
	return nil
}
