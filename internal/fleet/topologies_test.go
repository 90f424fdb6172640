package fleet

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
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

// TestACL uses all methods as a user with the documented permissions, and with one permission less.
func TestACL(t *testing.T) {
	process := gatetest.Redis(t)
	all := strings.Fields(Rights("robotsgate"))
	try := func(permissions []string) error {
		process.Command("FLUSHALL")
		process.Command("SCRIPT", "FLUSH")
		user := addUser(process, strings.Join(permissions, " "))
		s, err := dial(testContext(t), "redis://"+user+process.HostPort(), nil, "robotsgate", time.Second)
		if err != nil {
			return err
		}
		defer s.close()
		return useAll(testContext(t), s)
	}
	if err := try(all); err != nil {
		t.Fatalf("with all permissions: %v", err)
	}
	for i, permission := range all {
		if !strings.HasPrefix(permission, "+") && !strings.HasPrefix(permission, "~") {
			continue
		}
		if err := try(slices.Delete(slices.Clone(all), i, i+1)); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("without %s: got %v, want NOPERM", permission, err)
		}
	}
	user := addUser(process, Rights("robotsgate"))
	if _, err := dial(testContext(t), "redis://"+user+process.HostPort()+"/1", nil, "robotsgate", time.Second); err == nil {
		t.Error("another database needs no permission")
	}
	addUser(process, Rights("robotsgate")+" +select")
	if err := useAll(testContext(t), mustDial(t, "redis://"+user+process.HostPort()+"/1")); err != nil {
		t.Errorf("another database: %v", err)
	}
	if keys := process.Command("-n", "1", "DBSIZE"); keys == "0" {
		t.Error("database 1 was not used")
	}
}

func TestTLS(t *testing.T) {
	process := gatetest.RedisTLS(t)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(gatetest.Read(t, process.CA))) {
		t.Fatal("no certificate")
	}
	s, err := dial(testContext(t), process.Address(), roots, "robotsgate", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if err := useAll(testContext(t), s); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		address string
		roots   *x509.CertPool
		advice  string
	}{
		"unknown root":           {process.Address(), x509.NewCertPool(), "ca_file"},
		"another host":           {strings.Replace(process.Address(), "127.0.0.1", "localhost", 1), roots, "ca_file"},
		"a server without TLS":   {"rediss://" + greeter(t), roots, "begin fleet.address with redis://"},
		"a gate without TLS":     {"redis://" + process.HostPort(), nil, unreachable},
		"a port without servers": {"rediss://127.0.0.1:1", roots, unreachable},
	} {
		if _, err := dial(testContext(t), c.address, c.roots, "robotsgate", time.Second); err == nil || !strings.Contains(advice(err), c.advice) {
			t.Errorf("%s: got %v, want the advice %s", name, err, c.advice)
		}
	}
}

// greeter returns the address of a server that says something at once, without TLS.
func greeter(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		if conn, err := l.Accept(); err == nil {
			io.WriteString(conn, "-ERR unknown command\r\n")
			io.Copy(io.Discard, conn) // until the client closes
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// TestCluster uses names on all nodes, through all addresses and through one.
func TestCluster(t *testing.T) {
	gatetest.Long(t)
	cluster := gatetest.Cluster(t)
	for _, node := range cluster.Nodes {
		addUser(node, Rights("robotsgate")+" +asking +cluster|slots +cluster|shards")
	}
	user := addUser(cluster.Nodes[0], Rights("robotsgate")+" +asking +cluster|slots +cluster|shards")
	for _, address := range []string{
		strings.Replace(cluster.Address(), "redis://", "redis://"+user, 1),
		"redis://" + user + cluster.Nodes[1].HostPort(),
	} {
		s := mustDial(t, address)
		if err := useAll(testContext(t), s); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		for i := range 50 {
			name := fmt.Sprintf("robotsgate:{%d}", i)
			if fence, err := s.acquire(testContext(t), name, "gate-1", time.Minute); err != nil || fence == 0 {
				t.Fatalf("%s: %d, %v", name, fence, err)
			}
			if err := s.release(testContext(t), name, 0); err != nil {
				t.Fatal(err)
			}
		}
		for _, node := range cluster.Nodes {
			if node.Command("DBSIZE") == "0" {
				t.Errorf("no key is on %s", node.HostPort())
			}
			node.Command("FLUSHALL")
		}
	}
	// A slot moves to another node while the client knows the old one.
	s := mustDial(t, strings.Replace(cluster.Address(), "redis://", "redis://"+user, 1))
	if err := useAll(testContext(t), s); err != nil {
		t.Fatal(err)
	}
	moveSlot(t, cluster, testName+":s", func() {
		if err := useAll(testContext(t), s); err != nil {
			t.Errorf("while a slot moves: %v", err)
		}
	})
	if err := useAll(testContext(t), s); err != nil {
		t.Errorf("after a slot has moved: %v", err)
	}

	addUser(cluster.Nodes[0], Rights("robotsgate"))
	s, err := dial(testContext(t), "redis://"+user+cluster.Nodes[0].HostPort(), nil, "robotsgate", time.Second)
	for i := 0; err == nil && i < 50; i++ {
		_, err = s.load(testContext(t), fmt.Sprintf("robotsgate:{%d}", i), false)
	}
	if err == nil || !strings.Contains(advice(err), "+cluster|slots") {
		t.Errorf("without the permission for CLUSTER SLOTS: %v", err)
	}
}

// moveSlot moves the slot of a key, which is empty, to another node. It calls meanwhile in between, when the
// old node sends clients on to the new one.
func moveSlot(t *testing.T, cluster *gatetest.RedisCluster, key string, meanwhile func()) {
	t.Helper()
	slot := cluster.Nodes[0].Command("CLUSTER", "KEYSLOT", key)
	var owner, other *gatetest.RedisServer
	for _, node := range cluster.Nodes {
		node.Command("FLUSHALL")
		if !strings.HasPrefix(node.Command("GET", key), "MOVED") {
			owner = node
		} else {
			other = node
		}
	}
	from, to := owner.Command("CLUSTER", "MYID"), other.Command("CLUSTER", "MYID")
	other.Command("CLUSTER", "SETSLOT", slot, "IMPORTING", from)
	owner.Command("CLUSTER", "SETSLOT", slot, "MIGRATING", to)
	meanwhile()
	if owner.Command("CLUSTER", "COUNTKEYSINSLOT", slot) != "0" || other.Command("CLUSTER", "COUNTKEYSINSLOT", slot) == "0" {
		t.Errorf("the keys of slot %s are not on the new node", slot)
	}
	for _, node := range []*gatetest.RedisServer{other, owner, cluster.Nodes[0], cluster.Nodes[1], cluster.Nodes[2]} {
		node.Command("CLUSTER", "SETSLOT", slot, "NODE", to)
	}
}

// TestSentinel kills the primary, and makes the other server the primary while both run.
func TestSentinel(t *testing.T) {
	gatetest.Long(t)
	sentinels := gatetest.Sentinels(t)
	l := newLink(func(ctx context.Context) (server, error) {
		return dial(ctx, sentinels.Address(), nil, "robotsgate", time.Second)
	}, time.Second, useAll, slog.New(slog.DiscardHandler))
	l.start()
	t.Cleanup(l.close)
	usable := func() bool {
		return l.call(t.Context(), func(ctx context.Context, s server) error { return s.notify(ctx, []byte("a")) }) == nil
	}
	eventually := func(what string, done func() bool) {
		t.Helper()
		begin := time.Now()
		for ; !done(); <-time.After(5 * time.Millisecond) {
			if time.Since(begin) > 30*time.Second {
				t.Fatalf("%s: not within 30 s", what)
			}
		}
		t.Logf("%s: %v", what, time.Since(begin))
	}
	eventually("up", usable)
	primary := sentinels.Primary()
	if primary.Command("DBSIZE") == "0" {
		t.Error("the primary was not used")
	}
	connected := l.status().since
	eventually("the Sentinels have another primary", func() bool {
		_ = sentinels.Sentinels[0].Command("SENTINEL", "FAILOVER", "main")
		return sentinels.Primary() != primary
	})
	eventually("the change is noticed", func() bool { usable(); return l.status().since.After(connected) })
	eventually("up after the change", usable)
	primary = sentinels.Primary()
	primary.Kill()
	eventually("away after the end of the primary", func() bool { return !usable() })
	eventually("up after the failover", usable)
	if sentinels.Primary() == primary {
		t.Error("the primary is still the one that was ended")
	}
}

// TestSentinelMistakes: what the Sentinels can't tell is in the error.
func TestSentinelMistakes(t *testing.T) {
	for name, answers := range map[string][]string{
		"an unknown name":   {helloAnswer, "_\r\n"},
		"no address":        {helloAnswer, "*0\r\n"},
		"an empty address":  {helloAnswer, "*2\r\n$0\r\n\r\n$0\r\n\r\n"},
		"a strange address": {helloAnswer, "*2\r\n$3\r\na b\r\n$1\r\n1\r\n"},
		"no list":           {helloAnswer, "+OK\r\n"},
		"a list of lists":   {helloAnswer, "*2\r\n*0\r\n*0\r\n"},
	} {
		address := answering(t, answers)
		_, err := dial(testContext(t), "redis://"+address+"?sentinel=main", nil, "robotsgate", time.Second)
		if err == nil || !strings.Contains(err.Error(), "the Sentinel "+address+": ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
