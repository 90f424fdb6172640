package cli

import (
	"strings"
	"testing"

	"robotsgate/policy"
)

// TestHistoryBy: the history names the gate of a fleet that has fetched an answer.
func TestHistoryBy(t *testing.T) {
	p := &originHistory{}
	for by, want := range map[string]string{"": "", "gate1\x1b": ` (fetched by gate gate1\x1b)`} {
		row := p.row(policy.Answer{Snapshot: &policy.Snapshot{Status: 404, By: by}}, &p.rules)
		if line := row.String(); row.By != by || !strings.HasSuffix(line, want) || want == "" && strings.Contains(line, "gate") {
			t.Errorf("%q: got %q, want %q at the end", by, line, want)
		}
	}
}
