package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
)

var testKey = bytes.Repeat([]byte("k"), MinKey)

// A localStore is a gate's own store, in memory.
type localStore struct {
	snapshot.Store
	mu   sync.Mutex
	sets map[string]snapshot.Set
}

func (l *localStore) Load(_ context.Context, key string) (snapshot.Set, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set, ok := l.sets[key]
	return set, ok
}

func (l *localStore) Save(_ context.Context, key string, set snapshot.Set) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sets[key] = set
	return nil
}

// A web answers requests for robots.txt.
type web struct {
	mu      sync.Mutex
	status  int
	body    string
	fetches int
}

func newWeb() *web { return &web{status: 200, body: "User-agent: *\nDisallow: /private\n"} }

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fetches++
	return &http.Response{StatusCode: w.status, Body: io.NopCloser(strings.NewReader(w.body)), Header: http.Header{}, Request: r}, nil
}

// A testGate is a gate of a fleet: what decides, without a proxy.
type testGate struct {
	*Fleet
	engine *policy.Engine
	own    *localStore
	logged *gatetest.Output
}

// testOptions are those of a gate with its store at an address.
func testOptions(address string) Options {
	c := Default()
	c.Address, c.Timeout = Address(address), time.Second
	return Options{Key: testKey, Local: &localStore{sets: map[string]snapshot.Set{}}, Log: slog.New(slog.DiscardHandler), Gate: "gate-1",
		Settings: Settings{Config: c, StaleFor: time.Hour}}
}

// open joins a fleet until the test ends. It is connected if the store is there.
func open(t *testing.T, id, address string, w http.RoundTripper, change ...func(*Options)) *testGate {
	t.Helper()
	o, logged := testOptions(address), new(gatetest.Output)
	o.Gate, o.Log = id, slog.New(slog.NewTextHandler(logged, nil))
	for _, f := range change {
		f(&o)
	}
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(policy.Config{Robots: policy.DefaultRobots(), Transport: w, Store: f, Shared: true, Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	f.Start(engine.Snapshots(), func() []pace.Reservation { return nil })
	t.Cleanup(func() {
		engine.Close()
		f.Close()
	})
	return &testGate{f, engine, o.Local.(*localStore), logged}
}

// opened starts gates that share a store, all connected.
func opened(t *testing.T, n int, address string, w http.RoundTripper) (gates []*testGate) {
	t.Helper()
	for i := range n {
		gates = append(gates, open(t, fmt.Sprint("gate-", i), address, w))
	}
	for _, g := range gates {
		g.wait(t, "connected", func(s Status) bool { return s.State == Connected && s.Gates == n })
	}
	return gates
}

func (g *testGate) wait(t *testing.T, what string, done func(Status) bool) {
	t.Helper()
	gatetest.Becomes(t, 30*time.Second, what, func() bool { return done(g.Status()) })
}

func request(t *testing.T) policy.Request {
	t.Helper()
	target, err := canonical.ParseURL("https://a.example/private")
	if err != nil {
		t.Fatal(err)
	}
	return policy.Request{Target: target, UserAgent: "bot"}
}

// decide returns whether a crawler may fetch /private, and why.
func (g *testGate) decide(t *testing.T) string {
	t.Helper()
	d, err := g.engine.Decide(t.Context(), request(t))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(d.Allow, " ", d.Reason)
}

// ofA is the key of what is known of the origin.
const ofA = "https://a.example robotsgate/0"

// A call is an answer of the store to a test's own command.
func (g *testGate) eval(t *testing.T, command ...string) string {
	t.Helper()
	c := *g.server.client.Load()
	got, err := c.Do(t.Context(), c.B().Arbitrary(command...).Build()).ToAny()
	if err != nil {
		t.Fatalf("%s: %v", command[0], err)
	}
	return fmt.Sprint(got)
}

// TestOneFetch: however many gates ask at once, an origin is asked once. The answer is in the own store of each, with
// the gate that has fetched it. A gate that starts late knows it too.
func TestOneFetch(t *testing.T) {
	redis, w := gatetest.Redis(t), newWeb()
	gates := opened(t, 4, redis.Address(), w)
	var all sync.WaitGroup
	for _, g := range gates {
		for range 3 {
			all.Go(func() {
				if got := g.decide(t); got != "false rule" {
					t.Error(got)
				}
			})
		}
	}
	all.Wait()
	late := open(t, "late", redis.Address(), w)
	if got := late.decide(t); got != "false rule" || w.fetches != 1 {
		t.Errorf("the late gate: %s after %d fetches", got, w.fetches)
	}
	gatetest.Becomes(t, 10*time.Second, "each gate has the answer, all but one from another gate", func() bool {
		by := map[bool]int{}
		for _, g := range append(gates, late) {
			if set, ok := g.own.Load(t.Context(), ofA); ok && string(set.Body) == w.body {
				by[set.Good.By == ""]++
			}
		}
		return by[true] == 1 && by[false] == 4
	})
	// A refresh at one gate reaches all.
	w.mu.Lock()
	w.body = "User-agent: *\nAllow: /\n"
	w.mu.Unlock()
	if _, err := gates[0].engine.Refresh(t.Context(), request(t)); err != nil {
		t.Fatal(err)
	}
	for _, g := range append(gates, late) {
		gatetest.Becomes(t, 10*time.Second, "the new copy decides", func() bool { return g.decide(t) == "true rule" })
	}
	if w.fetches != 2 {
		t.Errorf("%d fetches after a refresh, want 2", w.fetches)
	}
	for key := range strings.FieldsSeq(strings.Trim(late.eval(t, "KEYS", "*"), "[]")) {
		if strings.HasPrefix(key, "robotsgate:") && late.eval(t, "PTTL", key) == "-1" {
			t.Errorf("%s has no time to live", key)
		}
	}
}

// TestLostStore: a gate goes on alone while the store can't be used, and uses it again when it is back. The password
// is in no log.
func TestLostStore(t *testing.T) {
	for name, c := range map[string]struct {
		lose, find func(*gatetest.RedisServer)
		advice     string
	}{
		"killed": {(*gatetest.RedisServer).Kill, (*gatetest.RedisServer).Restart, "runs and can be reached"},
		"hung":   {(*gatetest.RedisServer).Stop, (*gatetest.RedisServer).Continue, "runs and can be reached"},
		"read-only": {func(r *gatetest.RedisServer) { r.Command("REPLICAOF", "127.0.0.1", "1") },
			func(r *gatetest.RedisServer) { r.Command("REPLICAOF", "NO", "ONE") }, "the store is a replica"},
		"out of memory": {func(r *gatetest.RedisServer) { r.Command("CONFIG", "SET", "maxmemory", "1") },
			func(r *gatetest.RedisServer) { r.Command("CONFIG", "SET", "maxmemory", "0") }, "raise maxmemory"},
		"another password": {func(r *gatetest.RedisServer) {
			r.Command("CONFIG", "SET", "requirepass", "s3cret")
			r.Command("-a", "s3cret", "CLIENT", "KILL", "TYPE", "NORMAL")
		},
			func(r *gatetest.RedisServer) { r.Command("-a", "s3cret", "CONFIG", "SET", "requirepass", "") }, "give USER:PASSWORD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis, w := gatetest.Redis(t), newWeb()
			g := opened(t, 2, redis.Address(), w)[0]
			c.lose(redis)
			g.wait(t, "away", func(s Status) bool { return s.State == Away && s.Error != "" })
			if got := g.decide(t); got != "false rule" {
				t.Error(got)
			}
			if n := g.clock.Alone(); n != 2 {
				t.Errorf("goes on as one of %d gates, want 2", n)
			}
			if _, err := g.clock.Reserve(pace.Reservation{Key: "a", Since: -1}); err != errAway {
				t.Errorf("a reservation: %v", err)
			}
			g.wait(t, "the advice in the log", func(Status) bool { return strings.Contains(g.logged.String(), c.advice) })
			if strings.Contains(g.logged.String(), "s3cret") {
				t.Errorf("the log is\n%s", g.logged)
			}
			c.find(redis)
			g.wait(t, "back", func(s Status) bool { return s.State == Connected && s.Gates == 2 })
		})
	}
}

// TestNoStore: a gate starts without a store, decides, and ends.
func TestNoStore(t *testing.T) {
	for _, address := range []string{"redis://127.0.0.1:1", "redis://127.0.0.1:1?sentinel=main", "rediss://127.0.0.1:1"} {
		g := open(t, "alone", address, newWeb())
		if got := g.decide(t); got != "false rule" {
			t.Errorf("%s: %s", address, got)
		}
		if s := g.Status(); s.State != Away || !strings.Contains(g.logged.String(), "is away") {
			t.Errorf("%s: %+v, the log is\n%s", address, s, g.logged)
		}
	}
}

// TestForged: a value that no gate with the key has written under its name counts as absent, is counted, and the next
// one replaces it.
func TestForged(t *testing.T) {
	redis, w := gatetest.Redis(t), newWeb()
	g := opened(t, 1, redis.Address(), w)[0]
	other, err := newSealer(bytes.Repeat([]byte("x"), MinKey))
	if err != nil {
		t.Fatal(err)
	}
	name := g.key("set", ofA)
	good := func(change func(*snapshot.Set)) string {
		body := "User-agent: *\nAllow: /\n"
		set := snapshot.Set{Good: &snapshot.Snapshot{Status: 200, Fetched: time.Now(), SHA256: snapshot.Digest(body), Lifetime: time.Hour}, Body: []byte(body)}
		change(&set)
		text, err := g.encode(set)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	unchanged := func(*snapshot.Set) {}
	seal := func(s sealer, name, text string) string { return string(s.seal(name, []byte(text))) }
	for what, c := range map[string]struct {
		command  []string
		accepted bool
	}{
		"a value of a gate":     {[]string{"SET", name, seal(g.sealer, name, good(unchanged))}, true},
		"another key":           {[]string{"SET", name, seal(other, name, good(unchanged))}, false},
		"of another name":       {[]string{"SET", name, seal(g.sealer, name+"2", good(unchanged))}, false},
		"short":                 {[]string{"SET", name, "x"}, false},
		"no JSON":               {[]string{"SET", name, seal(g.sealer, name, "x")}, false},
		"another body":          {[]string{"SET", name, seal(g.sealer, name, good(unchanged)+"x")}, false},
		"a list":                {[]string{"RPUSH", name, "x"}, false},
		"too long":              {[]string{"SETRANGE", name, fmt.Sprint(maxValue), "x"}, false},
		"fetched in the future": {[]string{"SET", name, seal(g.sealer, name, good(func(s *snapshot.Set) { s.Good.Fetched = time.Now().Add(time.Hour) }))}, false},
		"refreshed in future":   {[]string{"SET", name, seal(g.sealer, name, good(func(s *snapshot.Set) { s.Refreshed = time.Now().Add(time.Hour) }))}, false},
		"a status":              {[]string{"SET", name, seal(g.sealer, name, good(func(s *snapshot.Set) { s.Good.Status = -1 }))}, false},
	} {
		g.eval(t, "DEL", name)
		g.eval(t, c.command...)
		before := g.Status().Rejected
		set, ok := g.Load(t.Context(), ofA)
		if ok != c.accepted || ok && string(set.Body) != "User-agent: *\nAllow: /\n" || (g.Status().Rejected > before) == c.accepted {
			t.Errorf("%s: got %+v, %v, rejected %d", what, set, ok, g.Status().Rejected-before)
		}
		g.share(t.Context(), ofA, snapshot.Set{Last: &snapshot.Snapshot{Status: 503, Fetched: time.Now()}})
		if set, _ := g.Load(t.Context(), ofA); set.Last == nil || set.Last.Status != 503 {
			t.Errorf("%s: it was not replaced: %+v", what, set)
		}
	}

	listed := func() bool {
		gates, _, err := g.list(t.Context(), "gates", g.gate, gateTime)
		return err == nil && len(gates) == 1
	}
	for what, c := range map[string]struct {
		command []string
		try     func() bool
	}{
		"an endless lease":     {[]string{"SET", g.key("lease", "a"), "x"}, func() bool { release, _ := g.Acquire(t.Context(), "a"); return release != nil }},
		"a list for a lease":   {[]string{"RPUSH", g.key("lease", "a"), "x"}, func() bool { release, _ := g.Acquire(t.Context(), "a"); return release != nil }},
		"a list for starts":    {[]string{"RPUSH", g.key("pace", "a"), "x"}, func() bool { return g.start(t) == 0 }},
		"a text for starts":    {[]string{"SET", g.key("pace", "a"), "x y"}, func() bool { return g.start(t) == 0 }},
		"starts in far future": {[]string{"SET", g.key("pace", "a"), "8999999999999999"}, func() bool { return g.start(t) == 0 }},
		"a list for a pause":   {[]string{"RPUSH", g.key("pause", "a b"), "x"}, func() bool { return pauseRow(t, g.clock) == 0 }},
		"a text for a pause":   {[]string{"SET", g.key("pause", "a b"), strings.Repeat("x", 50)}, func() bool { return pauseRow(t, g.clock) == 0 }},
		"a text for gates":     {[]string{"SET", g.key("gates", ""), "x"}, listed},
		"a gate":               {[]string{"ZADD", g.key("gates", ""), "9e15", "x"}, listed},
	} {
		g.eval(t, "DEL", c.command[1])
		g.eval(t, c.command...)
		if !c.try() {
			t.Errorf("%s: it counts", what)
		}
		g.eval(t, "DEL", c.command[1])
	}
	if s := g.Status(); s.State != Connected {
		t.Errorf("%+v", s)
	}
}

// start reserves a start, and returns how long it has to wait.
func (g *testGate) start(t *testing.T) time.Duration {
	t.Helper()
	got, err := g.reserve(t.Context(), pace.Reservation{Key: "a", Interval: time.Minute, Since: -1, Longest: time.Minute, Memory: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return got.Wait
}

// TestLateResult: a result that arrives late replaces nothing newer, wherever it is.
func TestLateResult(t *testing.T) {
	redis := gatetest.Redis(t)
	g := opened(t, 1, redis.Address(), newWeb())[0]
	at := func(age time.Duration, status int) snapshot.Set {
		return snapshot.Set{Last: &snapshot.Snapshot{Status: status, Fetched: time.Now().Add(-age)}}
	}
	for _, c := range []struct{ first, then, want snapshot.Set }{
		{at(time.Minute, 503), at(time.Hour, 500), at(0, 503)},
		{at(time.Hour, 500), at(time.Minute, 503), at(0, 503)},
	} {
		g.eval(t, "FLUSHALL")
		g.share(t.Context(), ofA, c.first)
		g.share(t.Context(), ofA, c.then)
		if set, ok := g.Load(t.Context(), ofA); !ok || set.Last.Status != c.want.Last.Status {
			t.Errorf("got %+v, want the status %d", set.Last, c.want.Last.Status)
		}
	}
}

// TestPermission: one gate has the permission to fetch, which it renews. Another gets it when it is released, or 3 s after
// the gate has died.
func TestPermission(t *testing.T) {
	redis := gatetest.Redis(t)
	gates := opened(t, 2, redis.Address(), newWeb())
	release, _ := gates[0].Acquire(t.Context(), "a")
	lease := gates[0].key("lease", "a")
	if left := gates[0].eval(t, "PTTL", lease); len(left) != 4 || left > "3000" {
		t.Errorf("a permission ends after %s ms, want 3000", left)
	}
	gates[0].eval(t, "PEXPIRE", lease, "1500")
	gatetest.Becomes(t, 10*time.Second, "it is renewed", func() bool { return gates[0].eval(t, "PTTL", lease) > "1500" })
	got := make(chan bool)
	go func() {
		second, changed := gates[1].Acquire(t.Context(), "a")
		got <- second != nil && changed
	}()
	gatetest.Becomes(t, 10*time.Second, "the other gate waits", func() bool { return gates[1].Status().Calls > 10 })
	select {
	case <-got:
		t.Fatal("two gates have permission")
	default:
	}
	release()
	if !<-got {
		t.Error("after the release: no permission")
	}
	release() // again: the other gate's stays
	limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if third, changed := gates[0].Acquire(limited, "a"); third != nil || !changed {
		t.Error("a gate has released the permission of another")
	}
}

// pauseRow returns the row of a pause.
func pauseRow(t *testing.T, c pace.Clock) (row int) {
	t.Helper()
	if err := c.Pause("a", "b", func(p *pace.Pause, _ time.Duration) time.Duration { row = p.Row; return 0 }); err != nil {
		t.Error(err)
	}
	return row
}

// TestPauses: what one gate makes of a pause another reads. A change that another gate was faster with is made again.
func TestPauses(t *testing.T) {
	redis := gatetest.Redis(t)
	gates := opened(t, 2, redis.Address(), newWeb())
	a, b := gates[0].Clock(), gates[1].Clock()
	begin := func(p *pace.Pause, now time.Duration) time.Duration {
		*p = pace.Pause{Since: now, Until: now + 10*time.Second, Row: p.Row + 1}
		return time.Minute
	}
	calls := 0
	err := a.Pause("a", "b", func(p *pace.Pause, now time.Duration) time.Duration {
		if calls++; calls == 1 {
			if err := b.Pause("a", "b", begin); err != nil {
				t.Error(err)
			}
		}
		return begin(p, now)
	})
	if row := pauseRow(t, b); err != nil || calls != 2 || row != 2 {
		t.Errorf("%d calls, row %d, %v", calls, row, err)
	}
	if left := gates[0].eval(t, "PTTL", gates[0].key("pause", "a b")); len(left) != 5 {
		t.Errorf("a pause is kept for %s ms", left)
	}
	// One that has ended does not count.
	if err := a.Pause("a", "b", func(*pace.Pause, time.Duration) time.Duration { return time.Millisecond }); err != nil {
		t.Fatal(err)
	}
	gatetest.Becomes(t, 10*time.Second, "the pause has ended", func() bool { return pauseRow(t, b) == 0 })
	if err := errors.Join(gates[0].clock.Pause("c", "", begin), gates[1].clock.Pause("c", "", begin)); err != nil {
		t.Error(err)
	}
}

// TestStartsInStore: scripts/reserve.lua answers as pace.Starts does, whatever reservations come one after another.
// All times are whole minutes apart, so that the milliseconds between two calls make no difference.
func TestStartsInStore(t *testing.T) {
	redis, random := gatetest.Redis(t), gatetest.Random(t)
	g := opened(t, 1, redis.Address(), newWeb())[0]
	minutes := func(n int) time.Duration { return time.Duration(random.IntN(n)) * time.Minute }
	for round := range gatetest.Size(30, 300) {
		var starts pace.Starts
		var given, wants []time.Duration
		for i := range 40 {
			r := pace.Reservation{Interval: minutes(5), Since: -1, Longest: minutes(30) - 30*time.Second, Memory: time.Hour}
			if random.IntN(4) == 0 {
				r.Since = minutes(10)
			}
			want := r
			switch n := random.IntN(6); {
			case n == 0 && len(given) > 0:
				n := random.IntN(len(given))
				r.Returned, want.Returned = given[n], wants[n]
			case n == 1:
				r = pace.Reservation{Interval: time.Hour, Starts: 1 + random.IntN(20), Step: time.Hour / 64, Missed: max(random.IntN(10)-5, 0), Since: -1, Memory: time.Hour}
				want = r
			}
			r.Key = fmt.Sprint(round)
			now := time.Duration(time.Now().UnixMicro()) * time.Microsecond
			before := append(pace.Starts(nil), starts...)
			expected := starts.Reserve(want, now)
			got, err := g.reserve(t.Context(), r)
			if err != nil || (got.Wait-expected.Wait).Abs() > 10*time.Second || (got.Start == 0) != (expected.Start == 0) || got.Left != expected.Left {
				t.Fatalf("step %d: got %+v, %v, want %+v, for %+v after %v", i, got, err, expected, r, before)
			}
			if got.Start != 0 && r.Step == 0 {
				given, wants = append(given, got.Start), append(wants, expected.Start)
			}
		}
	}
}
