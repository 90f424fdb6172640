package gate

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"
)

// TestLogIsPrintable: text from an origin can't break or reverse a line of the log, in either
// format.
func TestLogIsPrintable(t *testing.T) {
	const hidden = "a\u202e\u2066\u009b\u2028\x1b[2J\nb"
	for _, format := range []string{"text", "json"} {
		var b strings.Builder
		Logger(format, slog.LevelInfo, &b).Warn(hidden, "origin", hidden, "error", errors.New(hidden))
		line := strings.TrimSuffix(b.String(), "\n")
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || strings.Count(line, `\u202e`) != 3 {
			t.Errorf("%s: %q", format, line)
		}
		if format == "json" {
			var record struct{ Msg, Origin, Error string }
			if err := json.Unmarshal([]byte(line), &record); err != nil || record.Msg != hidden || record.Origin != hidden || record.Error != hidden {
				t.Errorf("%s is read as %+v, %v", line, record, err)
			}
		}
	}
}
