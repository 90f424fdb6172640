package audit

import (
	"testing"
	"time"

	"robotsgate/internal/record"
)

// TestBars: each hour between the first and the last request has a bar, and one without requests a space.
func TestBars(t *testing.T) {
	begin := time.Date(2026, 11, 29, 8, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		after []time.Duration // of requests
		want  string
	}{
		{[]time.Duration{0, time.Minute}, ""},
		{[]time.Duration{0, 0, time.Hour, 3 * time.Hour, 3 * time.Hour, 3 * time.Hour, 3 * time.Hour},
			"▄▂ █  the last 4 hours, to 2026-11-29 11:00 UTC, at most 4 requests an hour"},
	} {
		var s Summary
		for _, after := range c.after {
			s.Line(&Line{Record: &record.Record{Time: begin.Add(after)}})
		}
		if got := bars(&s); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestSize: the size of files is known unless one of them is gzipped, no file, or missing.
func TestSize(t *testing.T) {
	if got := size([]string{"bars_test.go", "bars_test.go"}); got < 1000 {
		t.Errorf("got %d", got)
	}
	for _, name := range []string{"-", "reports", "missing", "audit.jsonl.gz"} {
		if got := size([]string{"bars_test.go", name}); got != 0 {
			t.Errorf("%s: got %d", name, got)
		}
	}
}
