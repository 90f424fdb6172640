//go:build linux && (amd64 || arm64)

package escapes

import (
	"regexp"
	"strings"
	"testing"

	"robotsgate/internal/confine/attempts"
)

// TestTable checks the rows that are only data.
func TestTable(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, a := range runnable() {
		if !name.MatchString(a.Name) || seen[a.Name] {
			t.Errorf("%q is no name, or there twice", a.Name)
		}
		seen[a.Name] = true
		if a.Tries == "" || strings.HasSuffix(a.Tries, ".") || a.Try == nil {
			t.Errorf("%s: got %q, want what it tries, and a function", a.Name, a.Tries)
		}
		// A token is a label of a name in DNS.
		w := attempts.World{Run: "rg" + strings.Repeat("0", 26)}
		if token := w.Token(a.Name); len(token) > 64 {
			t.Errorf("%s: %q is too long for a token", a.Name, token)
		}
	}
}
