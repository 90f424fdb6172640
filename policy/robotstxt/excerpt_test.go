package robotstxt

import (
	"fmt"
	"testing"
)

// TestAround: an excerpt ends where the file ends; CR, LF and CRLF end a line.
func TestAround(t *testing.T) {
	for _, test := range []struct {
		body    string
		line, n int
		want    string
	}{
		{"a\nb\nc\nd\n", 2, 1, "[{1 a} {2 b} {3 c}]"},
		{"a\r\nb\rc\nd", 4, 2, "[{2 b} {3 c} {4 d}]"},
		{"a\n", 1, 5, "[{1 a}]"},
		{"a\n", 9, 2, "[]"},
		{"a\x00\n", 1, 1, "[]"},
	} {
		if got := fmt.Sprint(Parse([]byte(test.body), 1000).Around(test.line, test.n)); got != test.want {
			t.Errorf("%q, line %d: got %s, want %s", test.body, test.line, got, test.want)
		}
	}
}
