package audit

import (
	"strings"
	"testing"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// TestSummaryRefused: each request counts once, and as denied if the gate has refused it.
func TestSummaryRefused(t *testing.T) {
	var s Summary
	for _, r := range []Record{
		{Decision: "allow", Reason: policy.NoMatch},
		{Decision: "allow", Reason: policy.NoMatch, Refused: proxy.ByLimit}, // no memory was left for the response
		{Decision: "deny", Reason: policy.ByRule},
		{Decision: "deny", Reason: policy.ByRule, Enforced: new(false)},
		{Refused: proxy.ByGuard},
		{Refused: proxy.ByLogin},
		{Error: "no such host"},
	} {
		s.Line(&Line{Record: &r})
	}
	if want := (Count{Requests: 7, Allowed: 1, Denied: 4, Reported: 1}); s.Count != want || s.Undecided != 1 {
		t.Errorf("got %+v and %d undecided, want %+v and 1", s.Count, s.Undecided, want)
	}
	kinds := map[string]int{}
	for _, n := range s.Reasons.Top(10) {
		kinds[n.Name] = n.Denied
	}
	for name, want := range map[string]int{"rule": 1, "guard": 1, "login": 1, "limit": 1, "no-match": 0, "no decision": 0} {
		if got, ok := kinds[name]; !ok || got != want {
			t.Errorf("%s: got %d denied (%v), want %d", name, got, ok, want)
		}
	}
}

// TestTallyLongNames: a name takes a bounded amount of memory.
func TestTallyLongNames(t *testing.T) {
	var s Summary
	s.Line(&Line{Record: &Record{Origin: "http://a.example", Rule: "Disallow: /" + strings.Repeat("ü", 1<<20), Line: 1}})
	if name := s.Rules.Top(1)[0].Name; len(name) > maxName+len("…") || !strings.HasSuffix(name, "ü…") {
		t.Errorf("got a name of %d bytes", len(name))
	}
}
