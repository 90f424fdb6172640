//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// patientFleet is for tests that count fetches or requests: on a busy machine an answer of the store may take
// longer than the default timeout, and a gate on its own fetches.
const patientFleet = "fleet: {address: \"ADDRESS\", key_file: \"KEY\", timeout: 5s}\n"

// TestFleet runs eight gates that share a Redis.
func TestFleet(t *testing.T) {
	longWithoutRace(t)
	redis := gatetest.Redis(t)
	f := &fleetTest{
		origins: newFleetOrigins(t), store: &storeClient{hostPort: redis.HostPort()},
	}
	defer f.store.close()
	f.config = fleetGateConfig(redis.Address(), newFleetKey(t), patientFleet+"crawlers: [{name: evil, user_agents: [\"EvilBot/*\"], product_tokens: [EvilBot]}]\n")
	f.gates = startFleet(t, 8, f.config)
	waitFleet(t, f.gates)
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"500 cold origins", f.coldOrigins},
		{"robots.txt through the gates", f.throughGates},
		{"the store hides names", f.hiddenNames},
		{"keys have a time to live", f.timesToLive},
		{"memory for an origin", f.memory},
		{"known origins need no calls", f.noCalls},
		{"refresh", f.refresh},
		{"refresh of an outage", f.refreshOutage},
		{"askers", f.askers},
		{"outage", f.outage},
		{"a gate that starts late fetches nothing that is known", f.late},
		{"a gate that starts again has its id", f.again},
		{"evidence", f.evidence},
		{"status page", f.page},
		{"metrics", f.metrics},
		{"configurations that differ", f.differ},
		{"a killed gate leaves", f.killed},
		{"a gate that ends leaves", f.ended},
	} {
		if !t.Run(c.name, c.test) {
			for i, g := range f.gates {
				t.Logf("gate %d:\n%s", i, lastLines(g.Log.String(), 5))
			}
		}
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

type fleetTest struct {
	origins *fleetOrigins
	store   *storeClient
	config  string
	gates   []*fleetGate
	cold    []string // origins that all gates know
}

// everywhere sends a request through each gate at once, and returns the answers.
func (f *fleetTest) everywhere(t *testing.T, agent, url string) []answer {
	t.Helper()
	answers, errs := make([]answer, len(f.gates)), make([]error, len(f.gates))
	var all sync.WaitGroup
	for i, g := range f.gates {
		all.Go(func() { answers[i], errs[i] = g.ask(t.Context(), agent, url) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return answers
}

// wantAll checks that all gates answer a URL with a status, and a decision that has a text.
func (f *fleetTest) wantAll(t *testing.T, agent, url string, status int, decision string) {
	t.Helper()
	for i, a := range f.everywhere(t, agent, url) {
		if a.status != status || !strings.Contains(a.decision+"; "+a.source, decision) {
			t.Errorf("gate %d, %s, %s: got %s, want %d and %s", i, agent, url, a.same(), status, decision)
		}
	}
}

// coldOrigins asks all gates at once for origins that none of them knows.
func (f *fleetTest) coldOrigins(t *testing.T) {
	kinds := []int{withRules, withRules, withRules, closedOrigin, withoutFile, largeOrigin, redirecting, slowOrigin, withRules, withRules}
	for i := range 500 {
		f.cold = append(f.cold, f.origins.next(kinds[i%len(kinds)]))
	}
	var all sync.WaitGroup
	begin := time.Now()
	for i, g := range f.gates {
		places := make(chan struct{}, 64) // requests at a time of each gate
		all.Go(func() {
			for j := range f.cold {
				origin := f.cold[(j+i*7)%len(f.cold)]
				places <- struct{}{}
				all.Go(func() {
					defer func() { <-places }()
					for path, status := range map[string][]int{"/page": {200, 403, 200}, "/private/": {403, 403, 200}} {
						a, err := g.ask(t.Context(), "GoodBot/1.0", origin+path)
						want := status[kindOf(origin)-withRules]
						if err != nil || a.status != want {
							t.Errorf("gate %d, %s%s: got %s, %v, want %d", i, origin, path, a.same(), err, want)
						}
					}
				})
			}
		})
	}
	all.Wait()
	t.Logf("%d requests in %v", 2*len(f.cold)*len(f.gates), time.Since(begin))
	sum := 0
	for _, origin := range f.cold {
		n := f.origins.fetched(origin)
		sum += n
		if n != 1 {
			t.Errorf("%s has received %d requests of its robots.txt, want 1", origin, n)
		}
	}
	t.Logf("8 gates have fetched the robots.txt of %d origins %d times", len(f.cold), sum)
}

// kindOf returns the kind of an origin: withRules for all that have the same rules.
func kindOf(origin string) int {
	host, _, _ := strings.Cut(strings.TrimPrefix(origin, "http://"), ":")
	kind, _ := strconv.Atoi(host[strings.LastIndexByte(host, '.')+1:])
	if kind == closedOrigin || kind == withoutFile {
		return kind
	}
	return withRules
}

func (f *fleetTest) throughGates(t *testing.T) {
	for _, c := range []struct {
		kind, status int
		body         string
	}{{withRules, 200, privateRules}, {withoutFile, 404, ""}, {brokenOrigin, 503, ""}} {
		origin := f.origins.next(c.kind)
		for i, a := range f.everywhere(t, "GoodBot/1.0", origin+"/robots.txt") {
			if a.status != c.status || c.status == 200 && a.body != c.body || c.status == 404 && a.body != "" {
				t.Errorf("gate %d, %s: got %d, %q", i, origin, a.status, a.body)
			}
		}
		if n := f.origins.fetched(origin); n != 1 {
			t.Errorf("%d fetches of %s, want 1", n, origin)
		}
	}
}

// keys returns all keys of the store.
func (f *fleetTest) keys(t *testing.T) (keys []string) {
	t.Helper()
	got, err := f.store.do("KEYS", "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range got.([]any) {
		keys = append(keys, key.(string))
	}
	if len(keys) < len(f.cold) {
		t.Fatalf("the store has %d keys", len(keys))
	}
	return keys
}

func (f *fleetTest) hiddenNames(t *testing.T) {
	names := regexp.MustCompile(`127\.\d+\.\d+\.\d+|:` + f.origins.port + `|GoodBot|goodbot|Disallow|http://`)
	for _, key := range f.keys(t) {
		kind, err := f.store.do("TYPE", key)
		if err != nil {
			t.Fatal(err)
		}
		read := map[any][]string{
			"hash": {"HGETALL", key}, "string": {"GET", key}, "stream": {"XRANGE", key, "-", "+"}, "none": {"TYPE", key},
		}[kind]
		if read == nil {
			t.Fatalf("%s has the type %s", key, kind)
		}
		value, err := f.store.do(read...)
		if err != nil {
			t.Fatal(err)
		}
		text := key + fmt.Sprint(value)
		if found := names.FindString(text); found != "" {
			t.Errorf("%s: the store has %q in clear", key, found)
		}
		if !strings.HasPrefix(key, "robotsgate:") {
			t.Errorf("%s does not begin with the prefix", key)
		}
	}
}

func (f *fleetTest) timesToLive(t *testing.T) {
	for _, key := range f.keys(t) {
		left, err := f.store.do("PTTL", key)
		if err != nil {
			t.Fatal(err)
		}
		// -2: the key has gone.
		if ms := left.(int64); ms == -1 || ms > (750*time.Hour).Milliseconds() {
			t.Errorf("%s lives for %d ms", key, ms)
		}
	}
}

// memory measures what an origin takes beside the body of its robots.txt.
func (f *fleetTest) memory(t *testing.T) {
	longest, sum, n := int64(0), int64(0), int64(0)
	for _, key := range f.keys(t) {
		if !strings.HasSuffix(key, ":s") {
			continue
		}
		used, err := f.store.do("MEMORY", "USAGE", key, "SAMPLES", "0")
		if err != nil {
			t.Fatal(err)
		}
		body, err := f.store.do("HSTRLEN", key, "b")
		if err != nil {
			t.Fatal(err)
		}
		beside := used.(int64) - body.(int64)
		if body.(int64) > 100<<10 {
			beside = 0 // the allocator rounds large blocks up by some percent
		}
		longest, sum, n = max(longest, beside), sum+beside, n+1
	}
	t.Logf("an origin takes %d bytes in the store beside its body, at most %d", sum/n, longest)
	if longest > 4<<10 {
		t.Errorf("an origin takes %d bytes beside the body of its robots.txt", longest)
	}
}

// noCalls: requests to known origins make no calls. Gates announce themselves and read notices meanwhile.
func (f *fleetTest) noCalls(t *testing.T) {
	g := f.gates[0]
	before, err := g.status()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for range 1000 {
		if a := g.mustAsk(t, f.cold[0]+"/page"); a.status != 200 {
			t.Fatal(a.same())
		}
	}
	after, err := g.status()
	if err != nil {
		t.Fatal(err)
	}
	own := int(time.Since(begin)/(250*time.Millisecond)+time.Since(begin)/(5*time.Second)) + 3
	if calls := after.Calls - before.Calls; calls > own {
		t.Errorf("%d calls of the store in %v for 1,000 requests, want none beside %d", calls, time.Since(begin), own)
	}
}

func (f *fleetTest) refresh(t *testing.T) {
	for i, g := range f.gates[:3] {
		origin := f.origins.next(changing)
		f.wantAll(t, "GoodBot/1.0", origin+"/page", 200, "allow;reason=no-match")
		f.origins.change(origin)
		if err := g.refresh(origin); err != nil {
			t.Fatal(err)
		}
		begin, longest := time.Now(), measureStalls()
		for _, g := range f.gates {
			for g.mustAsk(t, origin+"/page").status != 403 && time.Since(begin) < 30*time.Second {
				time.Sleep(10 * time.Millisecond) // real time: the gates are other processes
			}
		}
		took, stall := time.Since(begin), longest()
		t.Logf("after a refresh at gate %d all decide by the new copy within %v; a goroutine of this process waited for the processor for at most %v", i, took, stall)
		if took > time.Second+stall {
			t.Errorf("a refresh at gate %d took %v", i, took)
		}
		f.wantAll(t, "GoodBot/1.0", origin+"/page", 403, `line=3;rule="Disallow: /page"`)
		if n := f.origins.fetched(origin); n != 2 {
			t.Errorf("%d fetches of %s, want 2", n, origin)
		}
	}
}

// refreshOutage: a refresh that fails leaves the good copy in force, at all gates.
func (f *fleetTest) refreshOutage(t *testing.T) {
	origin := f.origins.next(breaking)
	f.wantAll(t, "GoodBot/1.0", origin+"/private/", 403, "deny;reason=rule")
	f.origins.change(origin)
	if err := f.gates[1].refresh(origin); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.wantAll(t, "GoodBot/1.0", origin+"/private/", 403, "deny;reason=rule")
		f.wantAll(t, "GoodBot/1.0", origin+"/page", 200, "allow;reason=no-match")
	}
	// A refresh through the API and one for GoodBot's next request, which an outage binds alone.
	if n := f.origins.fetched(origin); n > 3 {
		t.Errorf("%d fetches of %s, want 3", n, origin)
	}
}

// askers: the crawler of the configuration is one asker; clients without a crawler are another, whatever their
// User-Agent and the answer's Vary.
func (f *fleetTest) askers(t *testing.T) {
	origin := f.origins.next(varying)
	var all sync.WaitGroup
	for agent, status := range map[string]int{"GoodBot/1.0": 403, "EvilBot/1.0": 200, "ThirdBot/1.0": 403} {
		all.Go(func() { f.wantAll(t, agent, origin+"/private/", status, "") })
	}
	all.Wait()
	if n := f.origins.fetched(origin); n != 2 {
		t.Errorf("%d fetches for two askers", n)
	}
}

func (f *fleetTest) outage(t *testing.T) {
	origin := f.origins.next(brokenOrigin)
	for range 3 {
		f.wantAll(t, "GoodBot/1.0", origin+"/page", 403, "deny;reason=unreachable")
	}
	if n := f.origins.fetched(origin); n != 1 {
		t.Errorf("%d fetches of an unreachable robots.txt, want 1", n)
	}
}

// late starts a gate that knows nothing.
func (f *fleetTest) late(t *testing.T) {
	late := startFleet(t, 1, f.config)[0]
	defer late.end()
	gatetest.Becomes(t, 10*time.Second, "the gate is connected", late.connected)
	for _, origin := range f.cold[:50] {
		if a, b := late.mustAsk(t, origin+"/private/"), f.gates[0].mustAsk(t, origin+"/private/"); a.same() != b.same() {
			t.Errorf("the late gate answers %s, another one %s", a.same(), b.same())
		}
		if n := f.origins.fetched(origin); n != 1 {
			t.Errorf("%d fetches of %s, want 1", n, origin)
		}
	}
}

// again: a gate that ends and starts again is the same one, and needs the store for nothing that it knew.
func (f *fleetTest) again(t *testing.T) {
	g, err := startFleetGate(t, f.config)
	if err != nil {
		t.Fatal(err)
	}
	gatetest.Becomes(t, 10*time.Second, "the gate sees the others", func() bool { s, err := g.status(); return err == nil && len(s.Gates) >= 9 })
	a := g.mustAsk(t, f.cold[0]+"/private/")
	id := gatetest.Read(t, filepath.Join(filepath.Dir(g.config), "data", "gate-id"))
	if err := g.Terminate(); err != nil {
		t.Fatal(err)
	}
	b := gatetest.Serve(t, filepath.Dir(g.config), f.config)
	again := &fleetGate{Gate: b, config: g.config, client: gatetest.Client(t, b.Proxy)}
	if got := again.mustAsk(t, f.cold[0]+"/private/"); got.same() != a.same() {
		t.Errorf("got %s, before %s", got.same(), a.same())
	}
	if now := gatetest.Read(t, filepath.Join(filepath.Dir(g.config), "data", "gate-id")); now != id {
		t.Errorf("the id was %s, and is %s", id, now)
	}
	if n := f.origins.fetched(f.cold[0]); n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}

// evidence: what a gate has decided can be repeated from its own files.
func (f *fleetTest) evidence(t *testing.T) {
	ids := map[string]int{}
	foreign := 0
	for i, g := range f.gates {
		dir := filepath.Dir(g.config)
		log := filepath.Join(dir, "audit.jsonl")
		for _, option := range []string{"--replay", "--verify"} {
			gatetest.Becomes(t, 20*time.Second, fmt.Sprintf("gate %d: audit %s finds no difference", i, option), func() bool {
				out, err := g.run(t.Context(), "audit", option, log)
				if err != nil {
					t.Logf("gate %d: audit %s: %v\n%s", i, option, err, lastLines(out, 10))
				}
				return err == nil
			})
		}
		var record struct{ Gate string }
		line, _, _ := strings.Cut(gatetest.Read(t, log), "\n")
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Gate == "" {
			t.Errorf("gate %d: %v in %s", i, err, line)
		}
		ids[record.Gate]++
		out, err := g.run(t.Context(), "history", "--json", f.cold[0])
		if err != nil {
			t.Errorf("gate %d: history: %v\n%s", i, err, out)
		}
		if strings.Contains(out, `"by":`) {
			foreign++
		}
	}
	if len(ids) != len(f.gates) {
		t.Errorf("the gates have the ids %v", ids)
	}
	if foreign != len(f.gates)-1 {
		t.Errorf("%d gates have the snapshot of another gate, want %d", foreign, len(f.gates)-1)
	}
}

func (f *fleetTest) page(t *testing.T) {
	for i, g := range f.gates {
		resp, err := adminClient.Get(g.Admin + "/")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(page), ">Connected<") {
			t.Errorf("gate %d: %v, the page does not say Connected", i, err)
		}
		for _, other := range f.gates {
			id := strings.TrimSpace(gatetest.Read(t, filepath.Join(filepath.Dir(other.config), "data", "gate-id")))
			if !strings.Contains(string(page), id) {
				t.Errorf("gate %d does not show the gate %s", i, id)
			}
		}
		if resp, err := adminClient.Get(g.Admin + "/readyz"); err == nil {
			if resp.StatusCode != http.StatusOK {
				t.Errorf("gate %d: readiness is %s", i, resp.Status)
			}
			resp.Body.Close()
		}
	}
}

func (f *fleetTest) metrics(t *testing.T) {
	for i, g := range f.gates {
		text := get(g.Admin + "/metrics")
		for _, want := range []string{"robotsgate_fleet_up 1\n", "robotsgate_fleet_failures_total 0\n", "robotsgate_fleet_rejected_total 0\n", "robotsgate_fleet_configurations_differ 0\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("gate %d has no %q:\n%s", i, want, strings.Join(regexp.MustCompile(`(?m)^robotsgate_fleet_[a-z]+(_total|_differ)? .*$`).FindAllString(text, -1), "\n"))
			}
		}
	}
}

// differ: a gate with another configuration is noticed by all, until it has gone.
func (f *fleetTest) differ(t *testing.T) {
	all := func(differ bool) func() bool {
		return func() bool {
			for _, g := range f.gates {
				if s, err := g.status(); err != nil || s.Differ != differ {
					return false
				}
			}
			return true
		}
	}
	gatetest.Becomes(t, 25*time.Second, "the configurations are the same", all(false))
	other := startFleet(t, 1, f.config+"tags: {html: false}\n")[0]
	gatetest.Becomes(t, 12*time.Second, "all gates warn that configurations differ", all(true))
	for i, g := range f.gates {
		if text := get(g.Admin + "/"); !strings.Contains(text, "ifferent configurations") {
			t.Errorf("gate %d: the page does not warn", i)
		}
	}
	other.end()
	gatetest.Becomes(t, 25*time.Second, "the configurations are the same again", all(false))
}

func (f *fleetTest) killed(t *testing.T) {
	last := f.gates[len(f.gates)-1]
	f.gates = f.gates[:len(f.gates)-1]
	last.end()
	f.left(t)
}

func (f *fleetTest) ended(t *testing.T) {
	last := f.gates[len(f.gates)-1]
	f.gates = f.gates[:len(f.gates)-1]
	if err := last.Terminate(); err != nil {
		t.Error(err)
	}
	f.left(t)
}

// left measures how long a gate that has just gone is in the lists.
func (f *fleetTest) left(t *testing.T) {
	t.Helper()
	begin := time.Now()
	gatetest.Becomes(t, 40*time.Second, "the gate has left all lists", func() bool {
		for _, g := range f.gates {
			if !g.sees(len(f.gates)) {
				return false
			}
		}
		return true
	})
	took := time.Since(begin)
	t.Logf("the gate has left all lists after %v", took)
	if took > 22*time.Second {
		t.Errorf("a gate that has gone is in a list for %v", took)
	}
}

// TestFleetStale: while an origin is unreachable, a gate that starts late uses the stale copy of the others.
func TestFleetStale(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	redis, origins := gatetest.Redis(t), newFleetOrigins(t)
	config := fleetGateConfig(redis.Address(), newFleetKey(t), patientFleet+"robots: {min_age: 1s, max_age: 2s}\n")
	gates := startFleet(t, 2, config)
	waitFleet(t, gates)
	origin := origins.next(breaking)
	gates[0].mustAsk(t, origin+"/page")
	origins.change(origin)
	stale := func(g *fleetGate) bool {
		for path, status := range map[string]int{"/page": 200, "/private/": 403} {
			if a := g.mustAsk(t, origin+path); a.status != status {
				t.Errorf("%s: got %s, want %d", path, a.same(), status)
			} else if !strings.Contains(a.source, "state=stale") {
				return false
			}
		}
		return true
	}
	gatetest.Becomes(t, 10*time.Second, "the gate that has fetched it has a stale copy", func() bool { return stale(gates[0]) })
	if !stale(gates[1]) {
		t.Error("the other gate has no stale copy")
	}
	late := startFleet(t, 1, config)[0]
	gatetest.Becomes(t, 10*time.Second, "the late gate is connected", func() bool { return late.sees(3) })
	if !stale(late) {
		t.Error("the late gate has no stale copy")
	}
	for _, g := range gates {
		g.end()
	}
	last := startFleet(t, 1, config)[0]
	gatetest.Becomes(t, 10*time.Second, "the last gate is connected", last.connected)
	if !stale(last) {
		t.Error("a gate that starts when the one that has fetched it has gone has no stale copy")
	}
}

// TestFleetKilled: when the gate that fetches dies, the others decide in time.
func TestFleetKilled(t *testing.T) {
	longWithoutRace(t)
	const timeout = 4 * time.Second
	for _, c := range []struct {
		name   string
		kind   int
		end    func(fetching *fleetGate, cable *gatetest.Cable)
		status int
	}{
		{"kill -9", hangingOnce, func(g *fleetGate, _ *gatetest.Cable) { g.end() }, 200},
		{"kill -9, and the origin does not answer the next gate", hanging, func(g *fleetGate, _ *gatetest.Cable) { g.end() }, 403},
		{"the gate is stopped", hangingOnce, func(g *fleetGate, _ *gatetest.Cable) { g.Signal(syscall.SIGSTOP) }, 200},
		{"its network is cut", hangingOnce, func(_ *fleetGate, c *gatetest.Cable) { c.Cut() }, 200},
		{"its network hangs", hangingOnce, func(_ *fleetGate, c *gatetest.Cable) { c.Hang() }, 200},
		{"it ends", hangingOnce, func(g *fleetGate, _ *gatetest.Cable) { g.Signal(syscall.SIGTERM) }, 200},
		{"nothing happens to it", hanging, func(*fleetGate, *gatetest.Cable) {}, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			redis, origins, key := gatetest.Redis(t), newFleetOrigins(t), newFleetKey(t)
			cable := gatetest.NewCable(t, redis.HostPort())
			const more = "fleet: {address: \"ADDRESS\", key_file: \"KEY\", timeout: 1s}\nrobots: {timeout: 4s}\nlimits: {shutdown_grace: 1s}\n"
			fetching := startFleet(t, 1, fleetGateConfig("redis://"+cable.HostPort(), key, more))[0]
			others := startFleet(t, 4, fleetGateConfig(redis.Address(), key, more))
			waitFleet(t, append(slices.Clone(others), fetching))
			origin := origins.next(c.kind)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go fetching.ask(ctx, "GoodBot/1.0", origin+"/page") // it fails in most cases
			<-origins.arrived[strings.TrimPrefix(origin, "http://")]
			longest, begin := measureStalls(), time.Now()
			answers, errs := make([]answer, len(others)), make([]error, len(others))
			var all sync.WaitGroup
			for i, g := range others {
				all.Go(func() { answers[i], errs[i] = g.ask(ctx, "GoodBot/1.0", origin+"/page") })
			}
			c.end(fetching, cable)
			all.Wait()
			took, stall := time.Since(begin), longest()
			t.Logf("the others have decided after %v, after %d fetches; a goroutine of this process waited for the processor for at most %v", took, origins.fetched(origin), stall)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for i, a := range answers {
				if a.status != c.status {
					t.Errorf("gate %d: got %s, want %d", i, a.same(), c.status)
				}
			}
			if took > timeout+4*time.Second+stall {
				t.Errorf("the others have decided after %v, want %v", took, timeout+4*time.Second)
			}
			if n := origins.fetched(origin); n > 2 {
				t.Errorf("%d fetches, want at most one more after the death", n)
			}
		})
	}
}

// TestFleetStopped: a gate that is stopped while it fetches, until its permission has ended and another gate has a copy,
// denies nothing by its failure when it goes on.
func TestFleetStopped(t *testing.T) {
	longWithoutRace(t)
	redis, origins, key := gatetest.Redis(t), newFleetOrigins(t), newFleetKey(t)
	const more = "fleet: {address: \"ADDRESS\", key_file: \"KEY\", timeout: 1s}\nrobots: {timeout: 4s}\n"
	gates := startFleet(t, 2, fleetGateConfig(redis.Address(), key, more))
	waitFleet(t, gates)
	for round, paused := range []time.Duration{5 * time.Second, 15 * time.Second} { // less than requests wait, and more
		origin := origins.next(hangingOnce)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if a, err := gates[0].ask(t.Context(), "GoodBot/1.0", origin+"/page"); err != nil || a.status != 200 {
				t.Errorf("round %d: the request that waited: got %s, %v", round, a.same(), err)
			}
		})
		<-origins.arrived[strings.TrimPrefix(origin, "http://")]
		gates[0].Signal(syscall.SIGSTOP)
		begun := time.Now()
		if a := gates[1].mustAsk(t, origin+"/page"); a.status != 200 {
			t.Fatalf("round %d: the other gate: %s", round, a.same())
		}
		time.Sleep(paused - time.Since(begun)) // real time: the gates are other processes
		gates[0].Signal(syscall.SIGCONT)
		for begun := time.Now(); time.Since(begun) < 3*time.Second; time.Sleep(20 * time.Millisecond) { // real time, as above
			if a := gates[0].mustAsk(t, origin+"/page"); a.status != 200 {
				t.Errorf("round %d: %v after the gate goes on: got %s", round, time.Since(begun), a.same())
				break
			}
		}
		waiting.Wait()
	}
}

// TestFleetAskedAtStart: a gate that is asked as soon as it has started, while its connection to the store takes long,
// fetches nothing that the fleet knows.
func TestFleetAskedAtStart(t *testing.T) {
	longWithoutRace(t)
	redis, origins, key := gatetest.Redis(t), newFleetOrigins(t), newFleetKey(t)
	const more = "fleet: {address: \"ADDRESS\", key_file: \"KEY\", timeout: 5s}\n"
	first := startFleet(t, 1, fleetGateConfig(redis.Address(), key, more))[0]
	origin := origins.next(withRules)
	first.mustAsk(t, origin+"/page")
	cable := gatetest.NewCable(t, redis.HostPort())
	cable.Slow(100 * time.Millisecond)
	late := startFleet(t, 1, fleetGateConfig("redis://"+cable.HostPort(), key, more))[0]
	if late.connected() {
		t.Fatal("the gate is connected already: the test shows nothing")
	}
	if a := late.mustAsk(t, origin+"/private/"); a.status != 403 || origins.fetched(origin) != 1 {
		t.Errorf("got %s, after %d fetches, want 403 and 1", a.same(), origins.fetched(origin))
	}
}

// TestFleetStaleFor: the store keeps copies for as long as a changed robots.stale_for says.
func TestFleetStaleFor(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	redis, origins := gatetest.Redis(t), newFleetOrigins(t)
	store := &storeClient{hostPort: redis.HostPort()}
	defer store.close()
	config := fleetGateConfig(redis.Address(), newFleetKey(t), "")
	g := startFleet(t, 1, config)[0]
	gatetest.Becomes(t, 10*time.Second, "the gate is connected", g.connected)
	gatetest.Write(t, g.config, config+"robots: {stale_for: 12h}\n")
	g.Log.WaitFor(t, "has been reloaded")
	g.mustAsk(t, origins.next(withRules)+"/page")
	var left time.Duration
	gatetest.Becomes(t, 10*time.Second, "the store has the copy", func() bool {
		keys, err := store.do("KEYS", "*:s")
		if err != nil || len(keys.([]any)) == 0 {
			return false
		}
		ms, _ := store.do("PTTL", keys.([]any)[0].(string))
		left = time.Duration(ms.(int64)) * time.Millisecond
		return true
	})
	if want := 36 * time.Hour; left < want-time.Minute || left > want {
		t.Errorf("the store keeps the copy for %v, want %v", left, want)
	}
}

// TestFleetMaxBytes: gates with different robots.max_bytes share a long robots.txt. None replaces what the
// other has saved.
func TestFleetMaxBytes(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	redis, origins, key := gatetest.Redis(t), newFleetOrigins(t), newFleetKey(t)
	store := &storeClient{hostPort: redis.HostPort()}
	defer store.close()
	var gates []*fleetGate
	for _, size := range []string{"3MiB", "512KiB"} {
		gates = append(gates, startFleet(t, 1, fleetGateConfig(redis.Address(), key, patientFleet+"robots: {max_bytes: "+size+"}\n"))...)
	}
	waitFleet(t, gates)
	origin := origins.next(hugeOrigin)
	for _, g := range gates {
		if a := g.mustAsk(t, origin+"/private/"); a.status != 403 {
			t.Errorf("got %s", a.same())
		}
		gatetest.Becomes(t, 10*time.Second, "the store has the copy", func() bool {
			keys, err := store.do("KEYS", "*:s")
			return err == nil && len(keys.([]any)) > 0
		})
		time.Sleep(time.Second) // real time: the gate may replace it
	}
	if n := origins.fetched(origin); n != 1 {
		t.Errorf("%d fetches", n)
	}
	if s, err := gates[1].status(); err != nil || s.Rejected > 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestFleetReload: which keys a reload changes.
func TestFleetReload(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	redis, key := gatetest.Redis(t), newFleetKey(t)
	base := func(fleet string) string {
		return fleetGateConfig(redis.Address(), key, "fleet: {address: \"ADDRESS\", key_file: \"KEY\""+fleet+"}\n")
	}
	otherKey := newFleetKey(t)
	for _, c := range []struct {
		name, config string
		log          string // pattern
		connected    bool
	}{
		{"fleet.timeout", base(", timeout: 1s"), "has been reloaded", true},
		{"fleet.timeout that nothing can keep", base(", timeout: 1ns"), "at least|can't be used|is away", false},
		{"fleet.prefix", base(", prefix: other"), "only a restart puts them in force.*fleet.prefix", true},
		{"fleet.key_file", strings.ReplaceAll(base(""), key, otherKey), "only a restart puts them in force.*fleet.key_file", true},
		{"fleet.address", strings.ReplaceAll(base(""), redis.Address(), "redis://127.0.0.1:1"), "only a restart puts them in force.*fleet.address", true},
		{"no fleet", fleetGateConfig("", "", ""), "only a restart puts them in force.*fleet.address", true},
		{"fleet.ca_file that does not exist", base(", ca_file: missing.pem"), "can't be used", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := startFleet(t, 1, base(""))[0]
			gatetest.Becomes(t, 10*time.Second, "the gate is connected", g.connected)
			gatetest.Write(t, g.config, c.config)
			g.Log.WaitFor(t, c.log)
			if c.connected {
				// On a busy machine the store may be away for a moment.
				gatetest.Becomes(t, 10*time.Second, "the gate is connected after the reload", g.connected)
			}
		})
	}
}
