package gate

import (
	"io"
	"reflect"
	"testing"
	"time"

	"robotsgate/policy"
)

// TestSectionsArrive: the proxy and the engine get the sections of the configuration as they are.
func TestSectionsArrive(t *testing.T) {
	c, err := ParseConfig("gate.yaml", []byte(`
listen: 127.0.0.1:0
admin: {listen: ""}
data_dir: `+t.TempDir()+`
mode: report
unknown_clients: refuse
crawlers:
- {name: news, user_agents: ["news*"], purposes: [search]}
- {name: shop, mode: enforce, deny_status: 451}
overrides: [{hosts: ["*"], paths: [/open/], action: allow, reason: agreed}]
robots: {max_age: 1h, max_redirects: 7, unreachable_status: 503, user_agent: Bot/1}
tags: {max_head_bytes: 100KiB, head_timeout: 1s}
usage: {reserved: refuse, tdmrep: true}
https: {passthrough: [unseen.example]}
egress: {proxy: "http://user:password@127.0.0.1:3128"}
pace: {min_delay: 3s, max_wait: 7s}
limits: {max_connections: 100, max_connections_per_client: 7, idle_timeout: 5s}
`), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(c, Options{Out: io.Discard, Err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	s := g.settings(nil)
	if s.Tags != c.Tags.Tags || s.Pacer == nil || s.ConnectionLimits != c.Limits.ConnectionLimits || !s.Passthrough("unseen.example") || s.Passthrough("seen.example") {
		t.Errorf("the proxy has %+v", s)
	}
	if g.proxy.Limits != c.Limits.Limits || g.proxy.Limits.IdleTimeout != 5*time.Second {
		t.Errorf("the proxy has the limits %+v", g.proxy.Limits)
	}
	e := g.engineConfig()
	rules := c.Robots.Robots
	rules.HideRedirects = true // the parent proxy gets a login
	if !reflect.DeepEqual(e.Robots, rules) || e.Usage != c.Usage {
		t.Errorf("the engine has %+v and %+v", e.Robots, e.Usage)
	}
	if len(e.Overrides) != 1 || e.Overrides[0].Reason != "agreed" || e.Overrides[0].Action != policy.Allow {
		t.Errorf("the engine has the overrides %+v", e.Overrides)
	}
	k := e.Crawlers
	if len(k.Known) != 2 || !k.RefuseUnknown || k.Default.Mode != policy.Report || k.Known[0].Mode != policy.Report || k.Known[1].Mode != policy.Enforce || k.Known[1].DenyStatus != 451 || k.Known[0].DenyStatus != 403 || k.Known[0].Purposes[0] != "search" {
		t.Errorf("the engine has the crawlers %+v, %+v", *k.Known[0], *k.Known[1])
	}
}
