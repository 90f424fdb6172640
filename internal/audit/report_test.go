package audit

import "testing"

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
