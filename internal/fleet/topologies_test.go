package fleet

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

const testPassword = "s3/cr?e@t%:"

// addUser adds a user with permissions, and returns what an address has before the host.
func addUser(r *gatetest.RedisServer, permissions string) string {
	r.Command(append([]string{"ACL", "SETUSER", "gate", "reset", "on", ">" + testPassword}, strings.Fields(permissions)...)...)
	return "gate:" + strings.ReplaceAll(testPassword, "%", "%25") + "@"
}

// use makes the calls that a gate makes for two origins, on a store that it has connected to.
func (g *testGate) use(t *testing.T) {
	t.Helper()
	g.wait(t, "connected", func(s Status) bool { return s.State == Connected })
	for _, origin := range []string{"a", "b"} {
		release, _ := g.Acquire(t.Context(), origin)
		if release == nil {
			t.Fatal("no permission")
		}
		release()
	}
	if g.start(t) < 0 || pauseRow(t, g.clock) != 0 || g.Status().Failures > 0 {
		t.Errorf("%+v", g.Status())
	}
}

// TestTLS: the store's certificate is checked, with roots that a reload may change.
func TestTLS(t *testing.T) {
	redis, roots := gatetest.RedisTLS(t), x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(gatetest.Read(t, redis.CA))) {
		t.Fatal("no certificate")
	}
	open(t, "gate", redis.Address(), newWeb(), func(o *Options) { o.Roots = roots }).use(t)
	for name, address := range map[string]string{
		"unknown root": redis.Address(), "a gate without TLS": "redis://" + redis.HostPort(), "a store without TLS": "rediss://" + gatetest.Redis(t).HostPort(),
	} {
		g := open(t, "gate", address, newWeb())
		g.wait(t, name, func(s Status) bool { return s.State == Away && s.Error != "not connected yet" })
		if name != "unknown root" {
			continue
		}
		// On a busy machine the first try may end for lack of time.
		g.wait(t, "advised", func(Status) bool { return strings.Contains(g.logged.String(), "fleet.ca_file") })
		s := *g.settings.Load()
		s.Roots = roots
		g.Use(s)
		g.wait(t, "connected after a reload", func(s Status) bool { return s.State == Connected })
	}
}

// TestCluster uses a Cluster through all addresses and through one, as a user with the documented permissions.
func TestCluster(t *testing.T) {
	gatetest.Long(t)
	cluster := gatetest.Cluster(t)
	var user string
	for _, node := range cluster.Nodes {
		user = addUser(node, Rights("robotsgate")+" +asking +cluster|slots +cluster|shards")
	}
	for _, address := range []string{strings.Replace(cluster.Address(), "redis://", "redis://"+user, 1), "redis://" + user + cluster.Nodes[1].HostPort()} {
		g := open(t, "gate", address, newWeb())
		g.use(t)
		for i := range 50 {
			g.Acquire(t.Context(), fmt.Sprint(i))
		}
		for _, node := range cluster.Nodes {
			if node.Command("DBSIZE") == "0" {
				t.Errorf("no key is on %s", node.HostPort())
			}
			node.Command("FLUSHALL")
		}
	}
	for _, f := range Check(t.Context(), testOptions(strings.Replace(cluster.Address(), "redis://", "redis://"+user, 1))) {
		if !f.OK {
			t.Errorf("%+v", f)
		}
	}
}

// TestSentinel kills the primary: the gate goes on with the one that the Sentinels choose.
func TestSentinel(t *testing.T) {
	gatetest.Long(t)
	sentinels := gatetest.Sentinels(t)
	g := open(t, "gate", sentinels.Address(), newWeb())
	g.use(t)
	primary := sentinels.Primary()
	if primary.Command("DBSIZE") == "0" {
		t.Error("the primary was not used")
	}
	primary.Kill()
	g.wait(t, "away", func(s Status) bool { return s.State == Away })
	gatetest.Becomes(t, time.Minute, "connected after the failover", func() bool { return g.Status().State == Connected })
	if now := sentinels.Primary(); now == primary || now.Command("DBSIZE") == "0" {
		t.Error("the new primary is not used")
	}
}

// TestCheck: what doctor says of a store.
func TestCheck(t *testing.T) {
	redis := gatetest.Redis(t)
	opened(t, 2, redis.Address(), newWeb())
	grant := func(rights string) func() {
		return func() {
			redis.Command("SCRIPT", "FLUSH") // so that scripts have to be sent
			addUser(redis, rights)
		}
	}
	as := func(user string) func(*Options) {
		return func(o *Options) { o.Address = Address(strings.Replace(redis.Address(), "://", "://"+user, 1)) }
	}
	gate := as(addUser(redis, ""))
	const allRights = "ACL SETUSER NAME resetkeys ~robotsgate:* resetchannels -@all " + rights
	type row struct {
		setUp  func()
		change func(*Options)
		want   []string
	}
	rows := map[string]row{
		"works":         {nil, func(*Options) {}, []string{"store true redis://127.0.0.1:", "key true the same as that of the gates that are there: 2", "permissions true all scripts run"}},
		"least rights":  {grant(Rights("robotsgate")), gate, []string{"store true", "key true", "permissions true"}},
		"another key":   {nil, func(o *Options) { o.Key = bytes.Repeat([]byte("x"), MinKey) }, []string{"key false gates whose key is another: 2 give all gates the same fleet.key_file", "permissions true"}},
		"no store":      {nil, func(o *Options) { o.Address = "redis://127.0.0.1:1" }, []string{"store false redis://127.0.0.1:1: ", "runs and can be reached"}},
		"password":      {nil, as("gate:wrong@"), []string{"store false", "check USER:PASSWORD in fleet.address"}},
		"slow":          {nil, func(o *Options) { o.Timeout = 1 }, []string{"store false redis://127.0.0.1:", "use a store that is nearer, or a longer fleet.timeout than 1ns"}},
		"out of memory": {func() { redis.Command("CONFIG", "SET", "maxmemory", "1") }, func(*Options) {}, []string{"permissions false scripts that fail: save, ", "raise maxmemory"}},
		"database":      {grant(Rights("robotsgate")), func(o *Options) { gate(o); o.Address += "/1" }, []string{"store false", allRights + ", and a few more for Sentinels, a Cluster or a database"}},
		"prefix":        {grant(Rights("other")), gate, []string{allRights}},
	}
	for command := range strings.FieldsSeq(rights) {
		if command != "+ping" { // rueidis needs none
			rows["without "+command] = row{grant(strings.Replace(Rights("robotsgate"), command, "", 1)), gate, []string{allRights}}
		}
	}
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			if c.setUp != nil {
				c.setUp()
			}
			o := testOptions(redis.Address())
			o.Log = nil // doctor has none
			c.change(&o)
			var got strings.Builder
			for _, f := range Check(t.Context(), o) {
				fmt.Fprintln(&got, f.Subject, f.OK, f.Text, f.Advice)
			}
			redis.Command("CONFIG", "SET", "maxmemory", "0")
			for _, want := range c.want {
				if !strings.Contains(got.String(), want) || strings.Contains(got.String(), "s3/cr") {
					t.Errorf("%q is missing, or the password is there:\n%s", want, &got)
				}
			}
		})
	}
	for key := range strings.FieldsSeq(redis.Command("KEYS", "robotsgate:doctor:*")) {
		if redis.Command("PTTL", key) == "-1" {
			t.Errorf("%s has no time to live", key)
		}
	}
}

// TestNoGoroutinesLeft: a gate that ends leaves nothing behind, whatever its store does.
func TestNoGoroutinesLeft(t *testing.T) {
	redis := gatetest.Redis(t)
	hung, err := net.Listen("tcp", "127.0.0.1:0") // which accepts no connection
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hung.Close() })
	before := runtime.NumGoroutine()
	for _, address := range []string{redis.Address(), "redis://127.0.0.1:1", "redis://127.0.0.1:1?sentinel=main", "redis://" + hung.Addr().String()} {
		t.Run(address, func(t *testing.T) { open(t, "gate", address, newWeb()) })
	}
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before+2; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}
