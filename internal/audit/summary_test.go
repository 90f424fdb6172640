package audit

import (
	"fmt"
	"strings"
	"testing"

	"robotsgate/internal/record"
)

// TestSummaryRefused: each request counts once: as denied if the decision has refused it, as refused if the gate has done
// so after a decision, and as without a decision if the gate has done so before.
func TestSummaryRefused(t *testing.T) {
	var s Summary
	for _, r := range []record.Record{
		{Decision: "allow", Reason: "no-match"},
		{Decision: "allow", Reason: "no-match", Refused: record.ByLimit}, // no memory was left for the response
		{Decision: "allow", Reason: "no-match", Refused: record.ByPace},
		{Decision: "deny", Reason: "rule", Enforced: new(false), Refused: record.ByBudget},
		{Decision: "deny", Reason: "rule"},
		{Decision: "deny", Reason: "rule", Enforced: new(false)},
		{Refused: record.ByGuard},
		{Refused: record.ByLogin},
		{Error: "no such host"},
	} {
		s.Line(&Line{Record: &r})
	}
	if want := (record.Counts{Allowed: 1, Denied: 1, Reported: 1, Refused: 3, Undecided: 3}); s.Counts != want {
		t.Errorf("got %+v, want %+v", s.Counts, want)
	}
	kinds := map[string]uint64{}
	for _, n := range s.Reasons.Top(10) {
		kinds[n.Name] = n.Denied
	}
	for name, want := range map[string]uint64{"rule": 1, "guard": 0, "login": 0, "limit": 0, "no-match": 0, "no decision": 0} {
		if got, ok := kinds[name]; !ok || got != want {
			t.Errorf("%s: got %d denied (%v), want %d", name, got, ok, want)
		}
	}
}

// TestTallyLongNames: a name takes a bounded amount of memory.
func TestTallyLongNames(t *testing.T) {
	var s Summary
	s.Line(&Line{Record: &record.Record{Origin: "http://a.example", Rule: "Disallow: /" + strings.Repeat("ü", 1<<20), Line: 1}})
	if name := s.Rules.Top(1)[0].Name; len(name) > maxName+len("…") || !strings.HasSuffix(name, "ü…") {
		t.Errorf("got a name of %d bytes", len(name))
	}
}

// TestTallyManyNames: hosts and errors are counted by 50,000 names. Of more, the least frequent are forgotten, and the
// summary says so.
func TestTallyManyNames(t *testing.T) {
	var s Summary
	const names = 50_000
	line := func(name string) { s.Line(&Line{Record: &record.Record{Origin: "http://" + name, Error: name}}) }
	for range 2 {
		line("often")
	}
	for i := range names {
		line(fmt.Sprint(i))
		if estimated := i == names-1; s.Hosts.Estimated != estimated || s.Failures.Estimated != estimated {
			t.Fatalf("%d names: estimated hosts %v, errors %v", i+2, s.Hosts.Estimated, s.Failures.Estimated)
		}
	}
	for _, tally := range []*Tally{&s.Hosts, &s.Failures} {
		if first := tally.Top(1)[0]; tally.Len() > names || first.Name != "often" || first.Sum() != 2 {
			t.Errorf("%d names, first %+v", tally.Len(), first)
		}
	}
}
