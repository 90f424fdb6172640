package history

import (
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"robotsgate/internal/logtext"
)

// MaxDiff bounds a diff, in lines: a robots.txt may have 50,000 rules.
const MaxDiff = 500

// Diff returns the changes as a unified diff, safe for a terminal, and the number of further
// lines.
func Diff(oldName, was, newName, is string) (lines []string, more int) {
	text := string(diff.Diff(oldName, plain(was), newName, plain(is)))
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "diff ") {
			continue // the next lines name the versions too
		}
		if len(lines) == MaxDiff {
			more++
			continue
		}
		lines = append(lines, logtext.Printable(strings.TrimRight(line, "\r\n")))
	}
	return lines, more
}

// plain returns text with the ends of line that diff needs.
func plain(text string) []byte {
	return []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
}
