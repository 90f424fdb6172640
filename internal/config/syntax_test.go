package config

import (
	"strings"
	"testing"
)

// TestSyntaxErrorInLongLines: the search for a syntax error parses a few times the file's
// size, however long its lines are.
func TestSyntaxErrorInLongLines(t *testing.T) {
	line := "  - {name: " + strings.Repeat("a", 4000) + "}\n"
	data := []byte("crawlers:\n" + strings.Repeat(line, 300) + "  - {name: [b}\n" + strings.Repeat(line, 300))
	tried := 0
	got := syntaxLine(data, func(beginning []byte) bool {
		tried += len(beginning)
		return !strings.Contains(string(beginning), "[")
	})
	if got != 302 || tried > 8*len(data) {
		t.Errorf("line %d, %d times the file parsed", got, tried/len(data))
	}
}
