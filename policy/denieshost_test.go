package policy

import (
	"testing"

	"robotsgate/policy/canonical"
)

// An override denies a host as a whole only if nothing that is sent to it could be allowed. Behind an address there may
// be any host.
func TestDeniesHost(t *testing.T) {
	deny := Override{Hosts: hosts(t, "*"), Action: Deny}
	for _, c := range []struct {
		name      string
		overrides []Override
		mode      Mode
		named, ip bool // denied, as a name and as an address
	}{
		{name: "none"},
		{name: "all", overrides: []Override{deny}, named: true, ip: true},
		{name: "reported only", overrides: []Override{deny}, mode: Report},
		{name: "all paths", overrides: []Override{{Hosts: hosts(t, "*"), Paths: []string{"/"}, Action: Deny}}, named: true, ip: true},
		{name: "the root alone", overrides: []Override{{Hosts: hosts(t, "*"), Paths: []string{"/$"}, Action: Deny}}},
		{name: "some methods", overrides: []Override{{Hosts: hosts(t, "*"), Methods: []string{"POST"}, Action: Deny}}},
		{name: "some methods, then all", overrides: []Override{{Hosts: hosts(t, "*"), Methods: []string{"POST"}, Action: Deny, Reason: "first"}, deny}, named: true, ip: true},
		{name: "another crawler", overrides: []Override{{Hosts: hosts(t, "*"), Crawlers: []string{"other"}, Action: Deny}}},
		{name: "allowed before, for some paths", overrides: []Override{{Hosts: hosts(t, "shop.example"), Paths: []string{"/a"}, Action: Allow}, deny}},
		{name: "left to robots.txt before", overrides: []Override{{Hosts: hosts(t, "shop.example"), Action: LeaveToRobots}, deny}},
		{name: "another host allowed before", overrides: []Override{{Hosts: hosts(t, "other.example"), Action: Allow}, deny}, named: true},
		{name: "another crawler allowed before", overrides: []Override{{Hosts: hosts(t, "*"), Crawlers: []string{"other"}, Action: Allow}, deny}, named: true, ip: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Engine{config: Config{Overrides: Prepared(c.overrides)}}
			for authority, want := range map[string]bool{"shop.example": c.named, "192.0.2.1": c.ip, "[2001:db8::1]": c.ip} {
				target, err := canonical.ParseTarget("https", authority, "/")
				if err != nil {
					t.Fatal(err)
				}
				k := &Crawler{Name: "news", Mode: c.mode}
				d, ok := e.DeniesHost(target, k)
				if ok != want || ok && (d.Allow || d.Reason != ByOverride || !d.Enforced) {
					t.Errorf("%s: %v %+v, want %v", authority, ok, d, want)
				}
				if !ok {
					continue
				}
				if replayed, _ := Overridden(e.config.Overrides, Strict, Request{Target: target, Crawler: k, whole: true}, d.Asked); d.Note != replayed.Note {
					t.Errorf("%s: denied for %q, and replayed for %q", authority, d.Note, replayed.Note)
				}
			}
		})
	}
}
