//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

const privateRules = "User-agent: *\nDisallow: /private\n"

// A fleetOrigin is an origin at an address of loopback. It records when pages arrive.
type fleetOrigin struct {
	*httptest.Server
	robots  atomic.Pointer[string] // nil: 503
	hangs   atomic.Int32           // so many fetches of robots.txt are not answered
	fetches atomic.Int32
	busy    atomic.Int32 // so many requests of /busy are answered with 429 and Retry-After: 2
	slow    atomic.Bool  // the next page takes a second

	mu     sync.Mutex
	starts []time.Time
}

// newFleetOrigin starts an origin with a robots.txt; "": it answers with 503.
func newFleetOrigin(t *testing.T, robots string) *fleetOrigin {
	t.Helper()
	o := new(fleetOrigin)
	o.change(robots)
	o.Server = httptest.NewServer(o)
	t.Cleanup(func() {
		o.CloseClientConnections()
		o.Close()
	})
	return o
}

func (o *fleetOrigin) change(robots string) {
	if o.robots.Store(&robots); robots == "" {
		o.robots.Store(nil)
	}
}

func (o *fleetOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	robots := o.robots.Load()
	switch {
	case r.URL.Path == "/robots.txt":
		if n := o.fetches.Add(1); n <= o.hangs.Load() {
			<-r.Context().Done()
		} else if robots == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			io.WriteString(w, *robots)
		}
		return
	case r.URL.Path == "/busy" && o.busy.Add(-1) >= 0:
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	o.mu.Lock()
	o.starts = append(o.starts, time.Now())
	o.mu.Unlock()
	if o.slow.Swap(false) {
		time.Sleep(time.Second) // real time: the gates are other processes
	}
}

// arrived returns when pages were requested.
func (o *fleetOrigin) arrived() []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.starts)
}

// A fleetGate is a gate of a fleet, or a lone one.
type fleetGate struct {
	*gatetest.Gate
	dir    string
	client *http.Client
}

// startGates starts gates until the test ends. They may be killed, and are in a fleet if there is an address of its store. On
// a busy machine an answer of the store may take longer than the default timeout, and a gate on its own fetches.
func startGates(t *testing.T, n int, address, more string) []*fleetGate {
	t.Helper()
	config := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: 127.0.0.1:0}\nlog: {audit: audit.jsonl}\negress: {allow_private: [127.0.0.0/8]}\n"
	if address != "" {
		config += fmt.Sprintf("fleet: {address: %q, key_file: fleet.key, timeout: 1s}\n", address)
	}
	gates := make([]*fleetGate, n)
	for i := range gates {
		dir := t.TempDir()
		file := filepath.Join(dir, "gate.yaml")
		gatetest.Write(t, filepath.Join(dir, "fleet.key"), strings.Repeat("key ", 8))
		if err := os.Chmod(filepath.Join(dir, "fleet.key"), 0o600); err != nil {
			t.Fatal(err)
		}
		gatetest.Write(t, file, config+more)
		g, err := gatetest.StartGate(exec.Command("robotsgate", "serve", "-c", file), io.Discard, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Kill() }) // its error is the signal
		gates[i] = &fleetGate{g, dir, gatetest.Client(t, g.Proxy)}
	}
	return gates
}

// startFleet starts gates that are connected and know of each other.
func startFleet(t *testing.T, n int, address, more string) []*fleetGate {
	t.Helper()
	gates := startGates(t, n, address, more)
	for _, g := range gates {
		gatetest.Becomes(t, 30*time.Second, "the gates are connected and know of each other", func() bool {
			s := g.status(t)
			return s.State == "connected" && s.Gates >= n
		})
	}
	return gates
}

// ask requests a URL, and returns the status and the decision.
func (g *fleetGate) ask(t *testing.T, url string) string {
	t.Helper()
	resp, err := g.client.Get(url)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	decision, _, _ := strings.Cut(resp.Header.Get("Robots-Gate-Decision"), ";token")
	return fmt.Sprintf("%d %s", resp.StatusCode, decision)
}

// A fleetStatus is the fleet in /api/overview.
type fleetStatus struct {
	State                            string
	Gates, Calls, Failures, Rejected int
}

func (g *fleetGate) status(t *testing.T) fleetStatus {
	t.Helper()
	var overview struct{ Fleet fleetStatus }
	text, _ := gatetest.Request(t, http.DefaultClient, http.MethodGet, g.Admin+"/api/overview", http.StatusOK)
	if err := json.Unmarshal([]byte(text), &overview); err != nil {
		t.Fatal(err)
	}
	return overview.Fleet
}

// everywhere requests a URL through all gates at once, and returns the different answers.
func everywhere(t *testing.T, gates []*fleetGate, url string) string {
	t.Helper()
	answers := make([]string, len(gates))
	var all sync.WaitGroup
	for i, g := range gates {
		all.Go(func() { answers[i] = g.ask(t, url) })
	}
	all.Wait()
	slices.Sort(answers)
	return strings.Join(slices.Compact(answers), ", ")
}

const (
	allowed     = "200 allow;reason=no-match"
	denied      = "403 deny;reason=rule"
	unreachable = "403 deny;reason=unreachable"
)

// TestFleet: gates that share a store fetch each robots.txt once, a refresh reaches all, a late gate knows what the others
// know, and each can show by its own files what it has decided.
func TestFleet(t *testing.T) {
	longWithoutRace(t)
	redis := gatetest.Redis(t)
	gates := startFleet(t, 4, redis.Address(), "")
	var origins []*fleetOrigin
	for i := range 40 {
		origin := newFleetOrigin(t, []string{privateRules, privateRules, ""}[i%3])
		origins = append(origins, origin)
		want := []string{denied, denied, unreachable}[i%3]
		if got := everywhere(t, gates, origin.URL+"/private/"); got != want || origin.fetches.Load() != 1 {
			t.Errorf("origin %d: got %s after %d fetches, want %s", i, got, origin.fetches.Load(), want)
		}
	}
	t.Run("refresh", func(t *testing.T) {
		origin := origins[0]
		for _, c := range []struct{ robots, page string }{{privateRules + "Disallow: /page\n", denied}, {privateRules, allowed}} {
			origin.change(c.robots)
			resp, err := http.Post(gates[1].Admin+"/api/refresh?origin="+url.QueryEscape(origin.URL), "", nil)
			if err != nil || resp.StatusCode/100 != 2 {
				t.Fatal(resp, err)
			}
			resp.Body.Close()
			begin, longest := time.Now(), measureStalls()
			gatetest.Becomes(t, 10*time.Second, "all gates decide by the new copy", func() bool { return everywhere(t, gates, origin.URL+"/page") == c.page })
			if took, stall := time.Since(begin), longest(); took > time.Second+stall {
				t.Errorf("a refresh took %v", took)
			}
		}
		if n := origin.fetches.Load(); n != 3 {
			t.Errorf("%d fetches, want 3", n)
		}
		origin.change("") // the good copy stays in force
		if resp, err := http.Post(gates[1].Admin+"/api/refresh?origin="+url.QueryEscape(origin.URL), "", nil); err == nil {
			resp.Body.Close()
		}
		if got := everywhere(t, gates, origin.URL+"/private/"); got != denied {
			t.Errorf("after an outage: %s", got)
		}
	})
	t.Run("a gate that starts late", func(t *testing.T) {
		late := startFleet(t, 1, redis.Address(), "")
		outage := newFleetOrigin(t, "")
		everywhere(t, gates, outage.URL+"/page")
		if got := everywhere(t, late, origins[1].URL+"/private/") + ", " + everywhere(t, late, outage.URL+"/page"); got != denied+", "+unreachable {
			t.Error(got)
		}
		if origins[1].fetches.Load() != 1 || outage.fetches.Load() != 1 {
			t.Errorf("%d and %d fetches", origins[1].fetches.Load(), outage.fetches.Load())
		}
	})
	t.Run("keys end", func(t *testing.T) {
		for key := range strings.SplitSeq(redis.Command("KEYS", "*"), "\n") {
			if ms := redis.Command("PTTL", key); ms == "-1" || !strings.HasPrefix(key, "robotsgate:") {
				t.Errorf("%s lives for %s ms", key, ms)
			}
		}
	})
	t.Run("evidence", func(t *testing.T) {
		ids := map[string]bool{}
		for _, g := range gates {
			log := filepath.Join(g.dir, "audit.jsonl")
			gatetest.Becomes(t, 20*time.Second, "the decisions can be repeated", func() bool {
				return exec.Command("robotsgate", "audit", "--replay", "-c", filepath.Join(g.dir, "gate.yaml"), log).Run() == nil && exec.Command("robotsgate", "audit", "--verify", "-c", filepath.Join(g.dir, "gate.yaml"), log).Run() == nil
			})
			var record struct{ Gate string }
			line, _, _ := strings.Cut(gatetest.Read(t, log), "\n")
			if err := json.Unmarshal([]byte(line), &record); err != nil || record.Gate == "" {
				t.Errorf("%v in %s", err, line)
			}
			ids[record.Gate] = true
		}
		if len(ids) != len(gates) {
			t.Errorf("the gates have the ids %v", ids)
		}
	})
	t.Run("metrics", func(t *testing.T) {
		text, _ := gatetest.Request(t, http.DefaultClient, http.MethodGet, gates[0].Admin+"/metrics", http.StatusOK)
		for _, want := range []string{"robotsgate_fleet_up 1\n", "robotsgate_fleet_calls_total ", "robotsgate_fleet_failures_total 0\n", "robotsgate_fleet_rejected_total 0\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing", want)
			}
		}
	})
}

// TestFleetStale: while an origin is unreachable, a gate that starts late uses the stale copy of the others.
func TestFleetStale(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	redis, origin := gatetest.Redis(t), newFleetOrigin(t, privateRules)
	const more = "robots: {min_age: 1s, max_age: 1s}\n"
	first := startFleet(t, 1, redis.Address(), more)[0]
	first.ask(t, origin.URL+"/page")
	origin.change("")
	gatetest.Becomes(t, 20*time.Second, "the copy is stale", func() bool { first.ask(t, origin.URL+"/page"); return origin.fetches.Load() > 1 })
	_ = first.Kill() // its error is the signal
	late := startFleet(t, 1, redis.Address(), more)
	if got := everywhere(t, late, origin.URL+"/private/") + ", " + everywhere(t, late, origin.URL+"/page"); got != denied+", "+allowed {
		t.Error(got)
	}
}

// TestFleetKilled: when the gate that fetches dies, the others decide at most 4 s after robots.timeout.
func TestFleetKilled(t *testing.T) {
	longWithoutRace(t)
	const timeout = 2 * time.Second
	for _, c := range []struct {
		name  string
		hangs int32 // fetches that are not answered
		end   syscall.Signal
		want  string
	}{
		{"killed", 1, syscall.SIGKILL, allowed},
		{"stopped", 1, syscall.SIGSTOP, allowed},
		{"killed, and the origin does not answer the next gate", 2, syscall.SIGKILL, unreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			redis, origin := gatetest.Redis(t), newFleetOrigin(t, privateRules)
			gates := startFleet(t, 4, redis.Address(), "robots: {timeout: 2s}\n")
			origin.hangs.Store(c.hangs)
			go func() {
				if resp, err := gates[0].client.Get(origin.URL + "/page"); err == nil { // it fails in most cases
					resp.Body.Close()
				}
			}()
			gatetest.Becomes(t, 10*time.Second, "the gate fetches", func() bool { return origin.fetches.Load() == 1 })
			begin, longest := time.Now(), measureStalls()
			if err := gates[0].Signal(c.end); err != nil {
				t.Fatal(err)
			}
			got := everywhere(t, gates[1:], origin.URL+"/page")
			if took, stall := time.Since(begin), longest(); took > timeout+4*time.Second+stall {
				t.Errorf("the others have decided after %v", took)
			}
			if n := origin.fetches.Load(); got != c.want || n != 2 {
				t.Errorf("got %s after %d fetches, want %s after 2", got, n, c.want)
			}
		})
	}
}

// TestFleetOutages: whatever happens to the store, no request fails, each decision is that of a lone gate, and afterwards
// the gates share again.
func TestFleetOutages(t *testing.T) {
	longWithoutRace(t)
	redis := func(command string) func(*testing.T, *gatetest.RedisServer) {
		return func(_ *testing.T, r *gatetest.RedisServer) { r.Command(strings.Fields(command)...) }
	}
	for name, c := range map[string]struct {
		do, mend func(*testing.T, *gatetest.RedisServer)
		rejected bool // values must have been
	}{
		"down":          {do: func(_ *testing.T, r *gatetest.RedisServer) { r.Kill() }, mend: func(_ *testing.T, r *gatetest.RedisServer) { r.Restart() }},
		"hung":          {do: func(_ *testing.T, r *gatetest.RedisServer) { r.Stop() }, mend: func(_ *testing.T, r *gatetest.RedisServer) { r.Continue() }},
		"started empty": {do: func(_ *testing.T, r *gatetest.RedisServer) { r.Restart() }},
		"emptied":       {do: redis("FLUSHALL")},
		"a replica":     {do: redis("REPLICAOF 127.0.0.1 1"), mend: redis("REPLICAOF NO ONE")},
		"out of memory": {do: redis("CONFIG SET maxmemory 1"), mend: redis("CONFIG SET maxmemory 0")},
		"a wrong password": {do: func(t *testing.T, r *gatetest.RedisServer) {
			redis("ACL SETUSER default resetpass >other")(t, r)
			redis("-a other CLIENT KILL TYPE normal")(t, r)
		}, mend: redis("-a other ACL SETUSER default nopass")},
		"connections cut":  {do: redis("CLIENT KILL TYPE normal")},
		"lists for values": {do: evalOnSets("redis.call('DEL', k) redis.call('RPUSH', k, 'x')"), rejected: true},
		"changed values":   {do: evalOnSets("redis.call('SETRANGE', k, 40, 'x')"), rejected: true},
		"restored from an old backup": {do: func(t *testing.T, r *gatetest.RedisServer) {
			redis("SAVE")(t, r)
			r.Restart()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := gatetest.Redis(t)
			gates := startFleet(t, 2, store.Address(), "")
			lone := startGates(t, 1, "", "")[0]
			known, unknown := newFleetOrigin(t, privateRules), newFleetOrigin(t, privateRules)
			compare := func(paths ...string) {
				t.Helper()
				for _, path := range paths {
					if got, want := everywhere(t, gates, path), lone.ask(t, path); got != want {
						t.Errorf("%s: got %s, want %s", path, got, want)
					}
				}
			}
			compare(known.URL+"/page", known.URL+"/private/")
			over := make(chan struct{})
			var traffic sync.WaitGroup
			defer traffic.Wait()
			defer close(over)
			for _, g := range gates {
				traffic.Go(func() {
					for {
						select {
						case <-over:
							return
						default:
						}
						if got := g.ask(t, known.URL+"/private/"); got != denied {
							t.Error(got)
						}
					}
				})
			}
			c.do(t, store)
			compare(unknown.URL+"/page", unknown.URL+"/private/", newFleetOrigin(t, "").URL+"/page")
			if c.mend != nil {
				gatetest.Becomes(t, 20*time.Second, "the gates notice", func() bool { return gates[0].status(t).State == "away" && gates[1].status(t).State == "away" })
				c.mend(t, store)
			}
			gatetest.Becomes(t, 30*time.Second, "the gates share again", func() bool {
				origin := newFleetOrigin(t, privateRules)
				return everywhere(t, gates, origin.URL+"/page") == allowed && origin.fetches.Load() == 1
			})
			compare(known.URL+"/page", unknown.URL+"/private/")
			if c.rejected {
				late := startFleet(t, 1, store.Address(), "")[0]
				if got := late.ask(t, known.URL+"/private/"); got != denied || late.status(t).Rejected == 0 {
					t.Errorf("a late gate: %s, %+v", got, late.status(t))
				}
			}
		})
	}
}

// evalOnSets returns what runs a script for each set in the store.
func evalOnSets(script string) func(*testing.T, *gatetest.RedisServer) {
	return func(_ *testing.T, r *gatetest.RedisServer) {
		r.Command("EVAL", "for _, k in ipairs(redis.call('KEYS', '*:set:*')) do "+script+" end", "0")
	}
}

// TestFleetNoStore: gates start without the store, say so, and use it when it is there.
func TestFleetNoStore(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	redis, origin := gatetest.Redis(t), newFleetOrigin(t, privateRules)
	redis.Kill()
	lone := startGates(t, 1, redis.Address(), "")
	if got := everywhere(t, lone, origin.URL+"/private/"); got != denied {
		t.Error(got)
	}
	lone[0].Log.WaitFor(t, "the fleet's store is away")
	redis.Restart()
	gatetest.Becomes(t, 30*time.Second, "connected", func() bool { return lone[0].status(t).State == "connected" })
}

// TestFleetPace: the distance of starts at an origin holds over all gates; while the store is away each keeps it times the
// number of gates.
func TestFleetPace(t *testing.T) {
	longWithoutRace(t)
	const number, distance = 4, 500 * time.Millisecond
	redis, origin := gatetest.Redis(t), newFleetOrigin(t, privateRules)
	gates := startFleet(t, number, redis.Address(), "pace: {min_delay: 500ms}\n")
	longest, over := measureStalls(), make(chan struct{})
	var clients sync.WaitGroup
	for _, g := range gates {
		clients.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if got := g.ask(t, origin.URL+"/page"); got != allowed && got != "429 allow;reason=no-match" {
					t.Error(got)
				}
			}
		})
	}
	lasts := 10 * time.Second
	gatetest.Becomes(t, time.Minute, "the starts of 10 s", func() bool {
		all := origin.arrived()
		return len(all) > 0 && time.Since(all[0]) > lasts
	})
	redis.Kill()
	lost := time.Now()
	gatetest.Becomes(t, time.Minute, "12 s without the store", func() bool { return time.Since(lost) > 12*time.Second })
	close(over)
	stall := longest()
	clients.Wait()
	together, alone := 0, 0
	starts := origin.arrived()
	for i, at := range starts {
		if at.After(lost) {
			alone++
			continue
		}
		together++
		if i > 0 && at.Sub(starts[i-1]) < distance*98/100-stall {
			t.Errorf("two starts are %v apart", at.Sub(starts[i-1]))
		}
	}
	if most := int(lasts/distance) + 1; together > most || together < most/2 {
		t.Errorf("%d starts in %v, want %d", together, lasts, most)
	}
	// Each gate may start once when it finds itself alone.
	if most := int(13*time.Second/distance) + number; alone > most || alone < number {
		t.Errorf("%d starts while the store was away, want at most %d", alone, most)
	}
}

// TestFleetPauses: a pause that an origin has asked one gate for holds at all. Then one request goes first, and the others
// follow when its answer is there.
func TestFleetPauses(t *testing.T) {
	longWithoutRace(t)
	redis, origin := gatetest.Redis(t), newFleetOrigin(t, privateRules)
	gates := startFleet(t, 3, redis.Address(), "pace: {back_off: 1m}\n")
	everywhere(t, gates, origin.URL+"/page")
	origin.busy.Store(1)
	longest := measureStalls()
	if got := gates[0].ask(t, origin.URL+"/busy"); got != "429 allow;reason=no-match" {
		t.Error(got)
	}
	begin, before := time.Now(), len(origin.arrived())
	origin.slow.Store(true)
	if got := everywhere(t, gates, origin.URL+"/page"); got != allowed {
		t.Error(got)
	}
	stall, starts := longest(), origin.arrived()[before:]
	if len(starts) != 3 {
		t.Fatalf("%d requests arrived", len(starts))
	}
	if first := starts[0].Sub(begin); first < 2*time.Second-50*time.Millisecond-stall {
		t.Errorf("the first request arrived %v after the 429", first)
	}
	if second := starts[1].Sub(starts[0]); second < time.Second-stall {
		t.Errorf("the second request arrived %v after the first, which was answered after 1 s", second)
	}
}

// TestFleetReload: which keys a reload changes.
func TestFleetReload(t *testing.T) {
	gatetest.Long(t)
	t.Parallel()
	redis := gatetest.Redis(t)
	g := startFleet(t, 1, redis.Address(), "")[0]
	file := filepath.Join(g.dir, "gate.yaml")
	config := gatetest.Read(t, file)
	for _, c := range []struct{ old, new, log string }{
		{"timeout: 1s", "timeout: 2s", "has been reloaded"},
		{redis.Address(), "redis://127.0.0.1:1", "only a restart puts them in force.*fleet.address"},
	} {
		gatetest.Write(t, file, strings.Replace(config, c.old, c.new, 1))
		g.Log.WaitFor(t, c.log)
	}
	if s := g.status(t); s.State != "connected" {
		t.Errorf("%+v", s)
	}
}
