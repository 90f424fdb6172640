//go:build unix

package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// A topology is a store that a fleet can use.
type topology struct {
	name  string
	start func(t *testing.T) (address, settings string, fails func())
}

// topologies start stores. fails breaks a store in a way from which it recovers without help; it may be nil.
var topologies = []topology{
	{"TLS", func(t *testing.T) (string, string, func()) {
		r := gatetest.RedisTLS(t)
		return r.Address(), ", ca_file: " + r.CA, nil
	}},
	{"TLS with the documented user", func(t *testing.T) (string, string, func()) {
		r := gatetest.RedisTLS(t)
		mustCommand(t, r, documentedUser(t, "fleet", "sesame-1")...)
		return strings.Replace(r.Address(), "://", "://fleet:sesame-1@", 1), ", ca_file: " + r.CA, nil
	}},
	{"the documented user", func(t *testing.T) (string, string, func()) {
		r := gatetest.Redis(t)
		mustCommand(t, r, documentedUser(t, "gate", "sesame-1")...)
		mustCommand(t, r, "ACL", "SETUSER", "default", "nocommands")
		return strings.Replace(r.Address(), "://", "://gate:sesame-1@", 1), "", nil
	}},
	{"a password with all kinds of characters", func(t *testing.T) (string, string, func()) {
		r := gatetest.Redis(t, "--requirepass", "p@ss:w/o?r#d%1")
		return strings.Replace(r.Address(), "://", "://:p%40ss:w%2Fo%3Fr%23d%251@", 1), "", nil
	}},
	{"another database", func(t *testing.T) (string, string, func()) {
		r := gatetest.Redis(t)
		mustCommand(t, r, append(documentedUser(t, "gate", "sesame-1"), "+select")...)
		return strings.Replace(r.Address(), "://", "://gate:sesame-1@", 1) + "/3", "", nil
	}},
	{"another prefix", func(t *testing.T) (string, string, func()) {
		return gatetest.Redis(t).Address(), ", prefix: another", nil
	}},
	{"Sentinel, and the primary is killed", func(t *testing.T) (string, string, func()) {
		s := gatetest.Sentinels(t)
		return s.Address(), "", func() {
			primary := s.Primary()
			primary.Kill()
			gatetest.Becomes(t, 30*time.Second, "the Sentinels have another primary", func() bool { now := s.Primary(); return now != nil && now != primary })
		}
	}},
	{"Sentinel, and a Sentinel is killed", func(t *testing.T) (string, string, func()) {
		s := gatetest.Sentinels(t)
		return s.Address(), "", s.Sentinels[0].Kill
	}},
	{"Sentinel, and the primary is changed by command", func(t *testing.T) (string, string, func()) {
		s := gatetest.Sentinels(t)
		return s.Address(), "", func() {
			primary := s.Primary()
			mustCommand(t, s.Sentinels[0], "SENTINEL", "FAILOVER", "main")
			gatetest.Becomes(t, 30*time.Second, "the Sentinels have another primary", func() bool { now := s.Primary(); return now != nil && now != primary })
			// Until then it takes writes that are lost, such as that of a refresh (docs/fleet.md).
			gatetest.Becomes(t, 30*time.Second, "the old primary is a replica", func() bool { return strings.HasPrefix(primary.Command("ROLE"), "slave") })
		}
	}},
	{"Cluster", func(t *testing.T) (string, string, func()) { return gatetest.Cluster(t).Address(), "", nil }},
	{"Cluster by one node", func(t *testing.T) (string, string, func()) {
		return gatetest.Cluster(t).Nodes[1].Address(), "", nil
	}},
	{"Cluster with the documented user", func(t *testing.T) (string, string, func()) {
		c := gatetest.Cluster(t)
		for _, node := range c.Nodes {
			mustCommand(t, node, append(documentedUser(t, "gate", "sesame-1"), "+cluster|slots", "+cluster|shards")...)
		}
		return strings.Replace(c.Address(), "://", "://gate:sesame-1@", 1), "", nil
	}},
	{"Cluster, and a node starts again, empty", func(t *testing.T) (string, string, func()) {
		c := gatetest.Cluster(t)
		return c.Address(), "", c.Nodes[2].Restart
	}},
	{"two fleets with one store", func(t *testing.T) (string, string, func()) {
		r := gatetest.Redis(t)
		others := startFleet(t, 1, fleetGateConfig(r.Address(), newFleetKey(t), ""))
		gatetest.Becomes(t, 10*time.Second, "the other fleet is connected", others[0].connected)
		return r.Address(), ", prefix: second", nil
	}},
}

func mustCommand(t *testing.T, r *gatetest.RedisServer, args ...string) {
	t.Helper()
	if out := strings.TrimSpace(r.Command(args...)); out != "OK" {
		t.Fatalf("%s: %s", args[0], out)
	}
}

// TestFleetTopologies: three gates behave as one with each kind of store.
func TestFleetTopologies(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	origins := newFleetOrigins(t)
	for _, c := range topologies {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address, settings, fails := c.start(t)
			gates := startFleet(t, 3, fleetGateConfig(address, newFleetKey(t), "fleet: {address: \"ADDRESS\", key_file: \"KEY\", timeout: 1s"+settings+"}\n"))
			waitFleet(t, gates)
			if !t.Run("one fetch", func(t *testing.T) { fetchedOnce(t, origins, gates, 30) }) {
				t.Log(gates[0].Log)
			}
			t.Run("refresh", func(t *testing.T) { refreshed(t, origins, gates) })
			if fails == nil {
				return
			}
			t.Run("after the failure", func(t *testing.T) {
				fails()
				begin := time.Now()
				gatetest.Becomes(t, 30*time.Second, "all gates are connected", func() bool {
					return !slices.ContainsFunc(gates, func(g *fleetGate) bool { return !g.connected() })
				})
				// The gates notice the failure of a node with the first key there.
				gatetest.Becomes(t, 30*time.Second, "the gates share what they fetch", func() bool {
					for range 30 {
						origin := origins.next(withRules)
						for _, g := range gates {
							if a := g.mustAsk(t, origin+"/private/"); a.status != 403 {
								t.Errorf("got %s", a.same())
							}
						}
						if origins.fetched(origin) != 1 {
							return false
						}
					}
					return true
				})
				t.Logf("back in service after %v", time.Since(begin))
				fetchedOnce(t, origins, gates, 30)
				refreshed(t, origins, gates)
			})
		})
	}
}

// fetchedOnce asks all gates at once for origins that none of them knows.
func fetchedOnce(t *testing.T, origins *fleetOrigins, gates []*fleetGate, n int) {
	t.Helper()
	var all sync.WaitGroup
	urls := make([]string, n)
	for i := range urls {
		urls[i] = origins.next(withRules)
		for _, g := range gates {
			all.Go(func() {
				for path, status := range map[string]int{"/page": 200, "/private/": 403} {
					if a, err := g.ask(t.Context(), "GoodBot/1.0", urls[i]+path); err != nil || a.status != status {
						t.Errorf("%s%s: got %s, %v, want %d", urls[i], path, a.same(), err, status)
					}
				}
			})
		}
	}
	all.Wait()
	for _, origin := range urls {
		if n := origins.fetched(origin); n != 1 {
			t.Errorf("%d fetches of %s, want 1", n, origin)
		}
	}
}

// refreshed changes an origin and asks one gate for a refresh.
func refreshed(t *testing.T, origins *fleetOrigins, gates []*fleetGate) {
	t.Helper()
	origin := origins.next(changing)
	for _, g := range gates {
		g.mustAsk(t, origin+"/page")
	}
	origins.change(origin)
	if err := gates[0].refresh(origin); err != nil {
		t.Fatal(err)
	}
	begin, longest := time.Now(), measureStalls()
	for _, g := range gates {
		gatetest.Becomes(t, 10*time.Second, "the gate decides by the new copy", func() bool { return g.mustAsk(t, origin+"/page").status == 403 })
	}
	if took, stall := time.Since(begin), longest(); took > time.Second+stall {
		t.Errorf("the refresh took %v", took)
	}
}

// TestFleetRoots: a store with a certificate that is not trusted is away, until the configuration names its root.
func TestFleetRoots(t *testing.T) {
	longWithoutRace(t)
	t.Parallel()
	origins, store, other := newFleetOrigins(t), gatetest.RedisTLS(t), gatetest.RedisTLS(t)
	key := newFleetKey(t)
	config := func(file string) string {
		return fleetGateConfig(store.Address(), key, "fleet: {address: \"ADDRESS\", key_file: \"KEY\", ca_file: "+file+"}\n")
	}
	g := startFleet(t, 1, config(other.CA))[0]
	g.Log.WaitFor(t, "the fleet's store is away.*check fleet.ca_file")
	if a := g.mustAsk(t, origins.next(withRules)+"/private/"); a.status != 403 {
		t.Errorf("got %s", a.same())
	}
	gatetest.Write(t, g.config, config(store.CA))
	gatetest.Becomes(t, 30*time.Second, "the gate is connected", g.connected)
	if n := strings.Count(g.Log.String(), "is away"); n != 1 {
		t.Errorf("the log says %d times that the store is away:\n%s", n, g.Log)
	}
}
