package robotstxt

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestConformance runs the cases of other parsers in the folder that
// ROBOTSGATE_CONFORMANCE names: JSON lines in the form of check --batch, with the expected
// answer in allowed.
func TestConformance(t *testing.T) {
	dir := os.Getenv("ROBOTSGATE_CONFORMANCE")
	if dir == "" {
		t.Skip("ROBOTSGATE_CONFORMANCE names no folder with cases")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if len(files) == 0 {
		t.Fatalf("no *.jsonl in %s", dir)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			cases := 0
			lines := bufio.NewScanner(bytes.NewReader(data))
			lines.Buffer(nil, 16<<20)
			for n := 1; lines.Scan(); n++ {
				var c struct {
					Robots       *string `json:"robots"`
					RobotsB64    []byte  `json:"robots_b64"`
					URL          string  `json:"url"`
					ProductToken *string `json:"product_token"`
					Status       int     `json:"status"`
					Allowed      *bool   `json:"allowed"`
				}
				if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
					t.Fatalf("line %d: %v", n, err)
				}
				if c.Robots == nil && c.RobotsB64 == nil || c.Allowed == nil {
					continue // not of this form
				}
				if c.ProductToken == nil || c.Status != 0 && c.Status != 200 {
					continue // about more than this package
				}
				if c.Robots != nil {
					c.RobotsB64 = []byte(*c.Robots)
				}
				cases++
				v := Parse(c.RobotsB64, 0).Decide(PathOf(c.URL), *c.ProductToken)
				if v.Allowed != *c.Allowed {
					t.Errorf("line %d: %.300q: %s for %q: got allowed %v by %q, want %v",
						n, c.RobotsB64, c.URL, *c.ProductToken, v.Allowed, v.Rule, *c.Allowed)
				}
			}
			t.Logf("%d cases", cases)
		})
	}
}
