package gatetest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// RedisSentinels are three Sentinels, and three servers that they watch under the name main: a primary
// and two replicas.
type RedisSentinels struct{ Servers, Sentinels []*RedisServer }

// Sentinels starts Sentinels and servers until the test ends. After half a second without an answer the
// primary counts as down.
func Sentinels(t testing.TB) *RedisSentinels {
	t.Helper()
	primary := Redis(t)
	s := &RedisSentinels{Servers: []*RedisServer{primary}}
	for range 2 {
		s.Servers = append(s.Servers, Redis(t, "--replicaof", "127.0.0.1", fmt.Sprint(primary.Port)))
	}
	for range 3 {
		r := newRedis(t)
		file := filepath.Join(r.dir, "sentinel.conf")
		Write(t, file, fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor main 127.0.0.1 %d 2\n"+
			"sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000\n", r.Port, r.dir, primary.Port))
		r.start(file, "--sentinel")
		s.Sentinels = append(s.Sentinels, r)
	}
	ready := func() bool {
		for _, r := range s.Sentinels {
			if !strings.HasPrefix(r.Command("SENTINEL", "CKQUORUM", "main"), "OK 3 ") ||
				strings.Count(r.Command("SENTINEL", "REPLICAS", "main"), "master-link-status\nok") != 2 {
				return false
			}
		}
		return true
	}
	if !becomes(patience, ready) {
		t.Fatalf("the Sentinels are not ready:\n%s", s.Sentinels[0].Log)
	}
	return s
}

// Primary returns the server that is the primary for the first Sentinel.
func (s *RedisSentinels) Primary() *RedisServer {
	answer := s.Sentinels[0].Command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
	for _, r := range s.Servers {
		if strings.HasSuffix(answer, fmt.Sprintf("\n%d", r.Port)) {
			return r
		}
	}
	return nil
}

// Address returns the address for fleet.address.
func (s *RedisSentinels) Address() string {
	return "redis://" + hostPorts(s.Sentinels) + "?sentinel=main"
}

// A RedisCluster has three nodes, each with a third of the slots, and no replicas.
type RedisCluster struct{ Nodes []*RedisServer }

// Cluster starts a Cluster until the test ends.
func Cluster(t testing.TB, args ...string) *RedisCluster {
	t.Helper()
	_, client := redisProgram(t)
	c := new(RedisCluster)
	create := []string{"--cluster", "create", "--cluster-yes"}
	for range 3 {
		r := newRedis(t)
		r.start(append(r.plain(), append([]string{"--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(freePort(t)),
			"--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no"}, args...)...)...)
		c.Nodes = append(c.Nodes, r)
		create = append(create, r.HostPort())
	}
	if out, err := exec.Command(client, create...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", client, err, out)
	}
	ready := func() bool {
		for _, r := range c.Nodes {
			info := r.Command("CLUSTER", "INFO")
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") {
				return false
			}
		}
		return true
	}
	if !becomes(patience, ready) {
		t.Fatalf("the Cluster is not ready:\n%s", c.Nodes[0].Command("CLUSTER", "INFO"))
	}
	return c
}

// Address returns the address for fleet.address, with all nodes.
func (c *RedisCluster) Address() string { return "redis://" + hostPorts(c.Nodes) }

func hostPorts(servers []*RedisServer) string {
	var all []string
	for _, r := range servers {
		all = append(all, r.HostPort())
	}
	return strings.Join(all, ",")
}
