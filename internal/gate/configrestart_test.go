package gate

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/config"
	"robotsgate/policy"
)

func TestRestrain(t *testing.T) {
	old, changed := DefaultConfig(), DefaultConfig()
	changed.Mode = policy.Report
	changed.Listen = "127.0.0.1:1"
	changed.Robots.MaxBytes *= 2
	changed.Robots.MaxRedirects = 9
	changed.Log.Audit.File = "other.jsonl"
	changed.Crawlers = []Crawler{{Crawler: policy.Crawler{Name: "new"}}}
	kept := config.Restrain(changed, old)
	if want := []string{"listen", "robots.max_bytes", "log.audit"}; !slices.Equal(kept, want) {
		t.Errorf("kept: %q, want %q", kept, want)
	}
	if changed.Listen != old.Listen || changed.Robots.MaxBytes != old.Robots.MaxBytes || changed.Log.Audit.File != "" {
		t.Error("a key that needs a restart has been changed")
	}
	if changed.Mode != policy.Report || changed.Robots.MaxRedirects != 9 || len(changed.Crawlers) != 1 {
		t.Error("a key that needs none has been kept")
	}
	if again := config.Restrain(changed, old); len(again) > 0 {
		t.Errorf("nothing is left to keep: %q", again)
	}
}

// TestRestartIsSaid: config.yaml marks every key that takes effect at start only, and no
// other, with [restart].
func TestRestartIsSaid(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	section := ""
	key := regexp.MustCompile(`^( *)([a-z_]+):`)
	for line := range strings.Lines(string(data)) {
		m := key.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[1] == "" {
			section = m[2]
		}
		if strings.Contains(line, "# [restart] ") {
			said = append(said, strings.TrimPrefix(strings.Repeat(section+".", len(m[1])/2)+m[2], "."))
		}
	}
	if want := config.Paths(new(Config), "restart"); !slices.Equal(said, want) {
		t.Errorf("%s says [restart] of %q, want %q", exampleFile, said, want)
	}
}
