package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/htmlmeta"
	"robotsgate/internal/console"
	"robotsgate/policy/robotstag"
)

// TestTagsSaysWhatItDidNotRead: the output distinguishes a page without rules from a page
// that was not read to its end.
func TestTagsSaysWhatItDidNotRead(t *testing.T) {
	page := "<style>" + strings.Repeat("x", htmlmeta.DefaultMaxBytes) + "</style><meta name=robots content=noindex>"
	field := strings.Repeat("all,", robotstag.MaxField/4) + "noindex"
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	inPage, _ := json.Marshal(map[string]string{"html": page})
	for _, c := range []struct {
		name string
		tags Tags
		in   string
		want string
	}{
		{"html", Tags{HTML: file}, "", "  the head was not read to its end: it is too long\nno rules bind this crawler\n"},
		{"html batch", Tags{Batch: true}, string(inPage), `{"rules":[],"detail":[],"unknown":[],"partial":"limit"}` + "\n"},
		{"header", Tags{Header: []string{"X-Robots-Tag: " + field}}, "",
			"  a field is longer than 8192 bytes; the rest was not read\nno rules bind this crawler\n"},
	} {
		var out strings.Builder
		if err := c.tags.Run(t.Context(), console.Streams{In: strings.NewReader(c.in), Out: &out}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if out.String() != c.want {
			t.Errorf("%s: got %s, want %s", c.name, out.String(), c.want)
		}
	}
}
