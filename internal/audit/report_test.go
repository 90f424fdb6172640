package audit

import (
	"testing"
	"time"
)

// TestSize: the size of files is known unless one of them is gzipped, no file, or missing.
func TestSize(t *testing.T) {
	if got := size([]string{"report_test.go", "report_test.go"}); got < 500 {
		t.Errorf("got %d", got)
	}
	for _, name := range []string{"-", "reports", "missing", "audit.jsonl.gz"} {
		if got := size([]string{"report_test.go", name}); got != 0 {
			t.Errorf("%s: got %d", name, got)
		}
	}
}

// TestBars: each hour between the first and the last request has a bar, and one without requests a space. Of a longer
// log the last hours count, in whatever order its records come.
func TestBars(t *testing.T) {
	begin := time.Date(2026, 11, 29, 8, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		after []time.Duration // of requests
		want  string
	}{
		{nil, ""},
		{[]time.Duration{0, time.Minute}, ""},
		{[]time.Duration{3 * time.Hour, 0, 0, time.Hour, 3 * time.Hour, 3 * time.Hour, 3 * time.Hour},
			"▄▂ █\nby hour from 2026-11-29 08:00 to 2026-11-29 11:00 UTC, at most 4 an hour"},
		{[]time.Duration{0, 100 * time.Hour, 0, 99 * time.Hour, 28 * time.Hour},
			"██\nby hour from 2026-12-03 11:00 to 2026-12-03 12:00 UTC, at most 1 an hour"},
	} {
		var h hours
		for _, after := range c.after {
			h.add(begin.Add(after))
		}
		if got := h.bars(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
