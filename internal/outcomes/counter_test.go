package outcomes

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy"
)

func TestProgressText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewCounter("origin", Origin)
		if got, want := p.Summary(true), "0 requests (0/s), 0 denied, 0 origins"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		robots := func(i int) string { return fmt.Sprintf("http://%d.example/robots.txt", i) }
		for i := range 10 {
			p.Count(&proxy.Record{Decision: &policy.Decision{Allow: true, RobotsURL: robots(i % 3)}})
		}
		p.Count(&proxy.Record{})
		p.Count(&proxy.Record{Decision: &policy.Decision{Enforced: true, Reason: policy.ByOverride}, Refused: proxy.Refusal(policy.ByOverride)})
		p.Count(&proxy.Record{Decision: &policy.Decision{Enforced: true, Reason: policy.IsUnreachable, RobotsURL: robots(3)}, Refused: proxy.Refusal(policy.IsUnreachable)})
		p.Count(&proxy.Record{Refused: proxy.ByGuard})
		p.Count(&proxy.Record{Refused: proxy.ByGuard})
		p.Count(&proxy.Record{Decision: &policy.Decision{Reason: policy.ByRule, RobotsURL: robots(3)}})
		time.Sleep(2 * time.Second) // fake clock
		if got, want := p.Summary(true), "16 requests (8/s), 4 denied, 1 would be denied, 1 of them unreachable, 4 origins; denied by guard: 2, override: 1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		for i := range maxTargets + 10 {
			p.Count(&proxy.Record{Decision: &policy.Decision{Allow: true, RobotsURL: robots(i)}})
		}
		if got := len(p.targets); got != maxTargets {
			t.Errorf("%d origins are remembered", got)
		}
	})
}
