package report

import (
	"fmt"
	"strings"
	"testing"

	"robotsgate/internal/gate"
	"robotsgate/policy/snapshot"
)

// TestHistoryBy: the history names the gate of a fleet that has fetched an answer.
func TestHistoryBy(t *testing.T) {
	p := &originHistory{}
	for by, want := range map[string]string{"": "", "gate1\x1b": ` (fetched by gate gate1\x1b)`} {
		row := p.row(snapshot.Answer{Snapshot: &snapshot.Snapshot{Status: 404, By: by}}, &p.rules)
		if line := row.String(); row.By != by || !strings.HasSuffix(line, want) || want == "" && strings.Contains(line, "gate") {
			t.Errorf("%q: got %q, want %q at the end", by, line, want)
		}
	}
}

// TestManyDecisions: of one change 100 decisions are listed, and the others are counted.
func TestManyDecisions(t *testing.T) {
	p := &originHistory{Options: &Options{}, config: gate.DefaultConfig()}
	var paths []string
	for i := range 150 {
		paths = append(paths, fmt.Sprintf("/%d", i))
	}
	c := p.change(clients{}, phase{allow: true}, phase{}, paths)
	if len(c.Decisions) != 100 || c.More != 51 { // and the root
		t.Errorf("%d decisions are listed, and %d more; want 100 and 51", len(c.Decisions), c.More)
	}
}
