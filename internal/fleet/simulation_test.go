package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
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

// A simulation is a fleet over two days: gates crash and start again, lose the store, hang, and have
// clocks that differ. It notes every fetch and judges every decision.
type simulation struct {
	t       *testing.T
	rand    *rand.Rand
	server  *memoryServer
	gates   []*simGate
	origins int
	begun   time.Time

	mu        sync.Mutex
	fetches   map[string][]simFetch // by host
	flushes   []time.Time           // when the store was emptied
	decisions int
	starts    map[string][]simFetch // of paced requests, by host
}

// A simFetch is one fetch of a robots.txt.
type simFetch struct {
	at   time.Time
	gate *simGate
}

// A simGate is a gate of the simulation.
type simGate struct {
	*testGate
	s     *simulation
	pacer *pace.Pacer
	id    string
	skew  time.Duration // of its clock
	store *localStore

	mu      sync.Mutex
	fault   faults         // between this gate and the store
	outages [][2]time.Time // from when to when it was away
	dead    bool           // it is being killed
	running bool
	seen    map[string]time.Time // by host: the newest evidence of a decision
}

// simMaxAge is the freshness period. An answer is renewed in its last tenth.
const simMaxAge = 24 * time.Hour

// body returns what an origin serves at a time. It changes every 7 hours.
func (s *simulation) body(host string, at time.Time) string {
	return fmt.Sprintf("User-agent: *\nDisallow: /private/%d\n", at.Sub(s.begun)/(7*time.Hour))
}

// down reports whether an origin answers with an error: those of one name in ten do, in two of eleven hours.
func (s *simulation) down(host string, at time.Time) bool {
	hour := int(at.Sub(s.begun) / time.Hour)
	return strings.Contains(host, "7.") && hour%11 > 8
}

// RoundTrip is the web, as a gate sees it.
func (g *simGate) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(200 * time.Millisecond):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	now, host := time.Now(), r.URL.Host
	g.s.mu.Lock()
	g.s.fetches[host] = append(g.s.fetches[host], simFetch{now, g})
	g.s.mu.Unlock()
	if g.s.down(host, now) {
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	body := g.s.body(host, now)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
}

// A simServer is the store as one gate reaches it. All gates have the same clock here, so the times in
// sets are moved instead, as far as their clocks would differ.
type simServer struct {
	*memoryServer
	g *simGate
}

func (s simServer) do(ctx context.Context) error {
	s.g.mu.Lock()
	f := s.g.fault
	if s.g.dead {
		f.err = errors.New("the gate is dead")
	}
	s.g.mu.Unlock()
	if f.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.err
}

// shift returns a set with all its times moved.
func (s simServer) shift(name string, sealed []byte, by time.Duration) []byte {
	if sealed == nil || by == 0 {
		return sealed
	}
	text, _, err := s.g.sealer.open(name, kindSet, sealed)
	if err != nil {
		s.g.s.t.Error(err)
		return sealed
	}
	var set snapshot.Set
	if err := json.Unmarshal(text, &set); err != nil {
		s.g.s.t.Error(err)
		return sealed
	}
	move := func(at *time.Time) {
		if !at.IsZero() {
			*at = at.Add(by)
		}
	}
	for _, answer := range []*snapshot.Snapshot{set.Good, set.Last} {
		if answer != nil {
			move(&answer.Fetched)
			move(&answer.Since)
		}
	}
	move(&set.Refreshed)
	if text, err = json.Marshal(set); err != nil {
		s.g.s.t.Error(err)
	}
	return s.g.sealer.seal(name, kindSet, text)
}

func (s simServer) load(ctx context.Context, name string, withBody bool) (stored, error) {
	if err := s.do(ctx); err != nil {
		return stored{}, err
	}
	got, err := s.memoryServer.load(ctx, name, withBody)
	got.sealed = s.shift(name, got.sealed, s.g.skew)
	return got, err
}

func (s simServer) save(ctx context.Context, name string, version int64, v value, ttl time.Duration) (bool, error) {
	if err := s.do(ctx); err != nil {
		return false, err
	}
	v.sealed = s.shift(name, v.sealed, -s.g.skew)
	return s.memoryServer.save(ctx, name, version, v, ttl)
}

func (s simServer) acquire(ctx context.Context, name, gate string, ttl time.Duration) (int64, error) {
	if err := s.do(ctx); err != nil {
		return 0, err
	}
	return s.memoryServer.acquire(ctx, name, gate, ttl)
}

func (s simServer) renew(ctx context.Context, name string, fence int64, ttl time.Duration) (bool, error) {
	if err := s.do(ctx); err != nil {
		return false, err
	}
	return s.memoryServer.renew(ctx, name, fence, ttl)
}

func (s simServer) release(ctx context.Context, name string, fence int64) error {
	if err := s.do(ctx); err != nil {
		return err
	}
	return s.memoryServer.release(ctx, name, fence)
}

func (s simServer) reserve(ctx context.Context, name string, r pace.Reservation) (pace.Grant, error) {
	if err := s.do(ctx); err != nil {
		return pace.Grant{}, err
	}
	return s.memoryServer.reserve(ctx, name, r)
}

func (s simServer) notices(ctx context.Context, after string) ([][]byte, string, error) {
	if err := s.do(ctx); err != nil {
		return nil, "", err
	}
	return s.memoryServer.notices(ctx, after)
}

func (s simServer) announce(ctx context.Context, id string, text []byte, keep time.Duration) (map[string][]byte, time.Time, error) {
	if err := s.do(ctx); err != nil {
		return nil, time.Time{}, err
	}
	return s.memoryServer.announce(ctx, id, text, keep)
}

// Save forgets what a dead gate saves.
func (g *simGate) Save(ctx context.Context, sets map[string]snapshot.Set) error {
	g.mu.Lock()
	dead := g.dead
	g.mu.Unlock()
	if dead {
		return nil
	}
	return g.store.Save(ctx, sets)
}

func (g *simGate) Load(ctx context.Context, key string) (snapshot.Set, bool) {
	return g.store.Load(ctx, key)
}

func (g *simGate) Acquire(context.Context, string) (func(), bool) { return nil, false }

func (g *simGate) Origins(context.Context, string, string, int) ([]string, string, error) {
	return nil, "", nil
}

// start starts a gate.
func (g *simGate) start() {
	robots := policy.DefaultRobots()
	robots.MaxAge, robots.CacheBytes = simMaxAge, 4<<20
	log := slog.New(slog.DiscardHandler)
	o := Options{Key: testKey, Local: g, Log: log, Gate: g.id, Settings: Settings{Config: Default(), StaleFor: robots.StaleFor}}
	f, err := newFleet(o)
	if err != nil {
		g.s.t.Fatal(err)
	}
	f.intervals = slow
	f.sealer.now = func() time.Time { return time.Now().Add(-g.skew) }
	f.connect(o, to(simServer{g.s.server, g}))
	engine, err := policy.New(policy.Config{Robots: robots, Transport: g, Store: f, Shared: true, Log: log})
	if err != nil {
		g.s.t.Fatal(err)
	}
	pacer := pace.New(pace.Config{CrawlDelay: pace.Obey, MaxDelay: time.Minute, MaxWait: 10 * time.Second, MaxQueue: 100}, f.Clock())
	f.Start(engine.Snapshots(), pacer.Recent)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.testGate, g.pacer = &testGate{Fleet: f, engine: engine, own: g.store}, pacer
	g.running, g.dead = true, false
	g.outageLocked(10 * time.Second) // until it is connected
}

// outageLocked notes that the gate is away. The caller holds mu.
func (g *simGate) outageLocked(during time.Duration) {
	now := time.Now()
	g.outages = append(g.outages, [2]time.Time{now, now.Add(during)})
}

// away reports whether the gate was away at a time, soon after it, or shortly before.
func (g *simGate) away(at time.Time) bool {
	return slices.ContainsFunc(g.outages, func(o [2]time.Time) bool {
		return at.After(o[0].Add(-10*time.Second)) && at.Before(o[1].Add(time.Minute))
	})
}

// crash ends a gate without a last word.
func (g *simGate) crash() {
	g.mu.Lock()
	g.dead, g.running = true, false
	g.outageLocked(5 * time.Minute)
	g.mu.Unlock()
	g.pacer.Close()
	g.close()
}

// cut puts a fault between a gate and the store for a while.
func (g *simGate) cut(f faults, during time.Duration) {
	g.mu.Lock()
	g.fault = f
	g.outageLocked(during)
	g.mu.Unlock()
	time.Sleep(during) // fake clock
	g.mu.Lock()
	g.fault = faults{}
	g.mu.Unlock()
}

// trueTime returns when an answer was fetched.
func (g *simGate) trueTime(s *snapshot.Snapshot) time.Time {
	for _, other := range g.s.gates {
		if s.By == other.id {
			return s.Fetched.Add(other.skew - g.skew)
		}
	}
	return s.Fetched
}

// decide sends a request through a gate and judges the decision.
func (g *simGate) decide(host string) {
	target, err := canonical.ParseURL("https://" + host + "/private/1/x")
	if err != nil {
		g.s.t.Error(err)
		return
	}
	g.mu.Lock()
	engine, asked := g.engine, time.Now()
	g.mu.Unlock()
	d, err := engine.Decide(context.Background(), policy.Request{Target: target, UserAgent: "bot"})
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.running || g.engine != engine {
		return // it has crashed meanwhile
	}
	if err != nil {
		g.s.t.Errorf("%s, %s: %v", g.id, host, err)
		return
	}
	g.s.mu.Lock()
	g.s.decisions++
	g.s.mu.Unlock()
	now, snap := time.Now(), d.Robots.Snapshot
	fetched := g.trueTime(snap)
	age := asked.Sub(fetched)
	switch d.Robots.State {
	case snapshot.Fresh:
		if age > simMaxAge+5*time.Second {
			g.s.t.Errorf("%s, %s: a fresh answer is %v old", g.id, host, age)
		}
	case snapshot.Stale:
		if answered := g.trueTime(d.Robots.Answer); !g.s.down(host, answered) {
			g.s.t.Errorf("%s, %s: decided by a stale copy, but the origin was not down at %v", g.id, host, answered)
		}
	case snapshot.Unreachable:
		if d.Allow || !g.s.down(host, fetched) {
			g.s.t.Errorf("%s, %s: %+v, but the origin was not down at %v", g.id, host, d, fetched)
		}
		return
	}
	if fetched.Before(g.seen[host].Add(-time.Second)) {
		g.s.t.Errorf("%s, %s: decided by the rules of %v, but by those of %v before", g.id, host, fetched, g.seen[host])
	}
	g.seen[host] = fetched
	rules := g.s.body(host, fetched)
	if snap.SHA256 != snapshot.Digest(rules) {
		rules = g.s.body(host, fetched.Add(300*time.Millisecond)) // it has changed during the fetch
	}
	if snap.SHA256 != snapshot.Digest(rules) {
		g.s.t.Errorf("%s, %s: the evidence of %v, fetched by %q, is not what the origin served then", g.id, host, fetched, snap.By)
	}
	if want := !strings.Contains(rules, "/private/1\n"); d.Allow != want || now.Before(asked) {
		g.s.t.Errorf("%s, %s: allowed %v by %q", g.id, host, d.Allow, rules)
	}
}

// simInterval is the distance at the paced origins.
const simInterval = 2 * time.Second

// send sends a request to a paced origin when its turn comes.
func (g *simGate) send(host string) {
	g.mu.Lock()
	pacer := g.pacer
	g.mu.Unlock()
	turn, err := pacer.Wait(context.Background(), pace.Request{Origin: "https://" + host, Crawler: "bot", Token: "bot", CrawlDelay: simInterval})
	if err != nil {
		return // many others wait
	}
	g.s.mu.Lock()
	g.s.starts[host] = append(g.s.starts[host], simFetch{time.Now(), g})
	g.s.mu.Unlock()
	turn.Done(pace.Answer{Status: 200})
}

// checkPace looks at the distances of starts, except those around an outage.
func (s *simulation) checkPace() {
	total, others := 0, 0
	for host, starts := range s.starts {
		for i, f := range starts[1:] {
			before := starts[i]
			total++
			if f.gate != before.gate {
				others++
			}
			emptied := slices.ContainsFunc(s.flushes, func(at time.Time) bool { return f.at.Sub(at).Abs() < time.Minute })
			if f.at.Sub(before.at) < simInterval-time.Millisecond && !emptied && !f.gate.away(f.at) && !before.gate.away(before.at) {
				s.t.Errorf("%s: %s started %v after %s", host, f.gate.id, f.at.Sub(before.at), before.gate.id)
			}
		}
	}
	s.t.Logf("%d paced starts, %d of them by another gate than the one before", total, others)
	if others < total/4 {
		s.t.Error("the gates have not shared the paced origins")
	}
}

// run sends requests for some time, at random gates about random origins, while faults come and go.
func (s *simulation) run(requests int, during time.Duration) {
	synctest.Test(s.t, func(t *testing.T) {
		s.begun, s.server = time.Now(), newMemoryServer()
		for _, g := range s.gates {
			g.start()
		}
		time.Sleep(time.Minute) // fake clock: they have connected
		var all sync.WaitGroup
		step := during / time.Duration(requests)
		busy := map[*simGate]bool{}
		over := make(chan *simGate, len(s.gates))
		fault := func(g *simGate, f func()) {
			busy[g] = true
			all.Go(func() { f(); over <- g })
		}
		for range requests {
			time.Sleep(step) // fake clock
			for len(over) > 0 {
				delete(busy, <-over)
			}
			g := s.gates[s.rand.IntN(len(s.gates))]
			switch n := s.rand.IntN(20_000); {
			case busy[g]:
			case n < 2:
				fault(g, func() {
					g.crash()
					time.Sleep(5 * time.Minute) // fake clock
					g.start()
				})
				continue
			case n < 4:
				fault(g, func() { g.cut(faults{err: errors.New("connection refused")}, 20*time.Minute) })
			case n < 6:
				fault(g, func() { g.cut(faults{hang: true}, 10*time.Minute) })
			}
			if s.rand.IntN(requests/2) == 0 {
				s.mu.Lock()
				s.flushes = append(s.flushes, time.Now())
				s.mu.Unlock()
				s.server.flush()
			}
			g.mu.Lock()
			running := g.running
			g.mu.Unlock()
			if running {
				// Some origins are asked for often, most rarely.
				host := fmt.Sprintf("%d.example", int(float64(s.origins)*s.rand.Float64()*s.rand.Float64()))
				all.Go(func() { g.decide(host) })
				if s.rand.IntN(100) == 0 { // several gates have something to send at the same time
					host := fmt.Sprintf("paced-%d.example", s.rand.IntN(20))
					for range 6 {
						g := s.gates[s.rand.IntN(len(s.gates))]
						all.Go(func() { g.send(host) })
					}
				}
			}
		}
		all.Wait()
		for _, g := range s.gates {
			g.pacer.Close()
			g.close()
		}
	})
}

// check counts the fetches: in each freshness period there is one, and those that a fault explains.
func (s *simulation) check() {
	reasons := map[string]int{}
	for host, fetches := range s.fetches {
		for i, f := range fetches {
			if i == 0 {
				reasons["first"]++
				continue
			}
			before := fetches[i-1]
			age := f.at.Sub(before.at)
			switch {
			case age >= simMaxAge*9/10:
				reasons["renewed"]++
			case s.down(host, before.at):
				reasons["tried again after an error"]++
			case f.gate.away(f.at):
				reasons["its gate was away"]++
			case before.gate.away(before.at):
				reasons["the gate that had fetched it was away"]++
			case slices.ContainsFunc(s.flushes, func(at time.Time) bool { return at.After(before.at) && at.Before(f.at) }):
				reasons["the store was emptied"]++
			default:
				s.t.Errorf("%s was fetched by %s, %v after %s, for no reason", host, f.gate.id, age, before.gate.id)
			}
		}
	}
	s.t.Logf("%d decisions about %d origins, fetches: %v", s.decisions, len(s.fetches), reasons)
}

// TestSimulation runs 50 gates for 48 hours of faked time, with 10,000 origins in the long form. In
// the short form, and with the race detector, they are fewer.
func TestSimulation(t *testing.T) {
	gates, origins, requests := gatetest.Size(10, 50), gatetest.Size(200, 10_000), gatetest.Size(4_000, 100_000)
	s := &simulation{t: t, rand: gatetest.Random(t), origins: origins, fetches: map[string][]simFetch{}, starts: map[string][]simFetch{}}
	for i := range gates {
		skew := time.Duration(s.rand.Int64N(int64(2*time.Second))) - time.Second // differences of up to 2 s
		s.gates = append(s.gates, &simGate{s: s, id: fmt.Sprintf("gate-%02d", i), skew: skew, store: newLocalStore(), seen: map[string]time.Time{}})
	}
	s.run(requests, 48*time.Hour)
	s.check()
	s.checkPace()
}
