package robotstag_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"robotsgate/htmlmeta"
	"robotsgate/policy/robotstag"
)

// A row is one line of a conformance file: the form of "tags --batch" with the expected
// rules. Rows of other kinds in the same folder are skipped.
type row struct {
	Field string   `json:"field"`
	Lines []string `json:"lines"`

	HTML        *string `json:"html"`
	HTMLBase64  []byte  `json:"html_b64"`
	ContentType string  `json:"content_type"`

	ProductToken string    `json:"product_token"`
	Rules        *[]string `json:"rules"`
	Why          string    `json:"why"`
}

// TestConformance runs the *.jsonl files of the folder that
// ROBOTSGATE_CONFORMANCE names.
func TestConformance(t *testing.T) {
	dir := os.Getenv("ROBOTSGATE_CONFORMANCE")
	if dir == "" {
		t.Skip("ROBOTSGATE_CONFORMANCE is not set to a folder of *.jsonl")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	total := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 64<<20)
		for n := 1; lines.Scan(); n++ {
			var r row
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Errorf("%s:%d: %v", filepath.Base(file), n, err)
				continue
			}
			if r.Rules == nil {
				continue
			}
			tags, ok := r.read(t)
			if !ok {
				continue
			}
			total++
			got := robotstag.Effective(tags.For(r.ProductToken))
			if !slices.Equal(got, *r.Rules) {
				t.Errorf("%s:%d: %s: got %v, want %v", filepath.Base(file), n, r.Why, got, *r.Rules)
			}
		}
		if err := lines.Err(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if total == 0 {
		t.Errorf("%s has no row about tags", dir)
	}
	t.Logf("%d rows", total)
}

func (r row) read(t *testing.T) (robotstag.Tags, bool) {
	switch {
	case strings.EqualFold(r.Field, "Robots-Tag"):
		return robotstag.ParseHeader(r.Lines, nil), true
	case strings.EqualFold(r.Field, "X-Robots-Tag"):
		return robotstag.ParseHeader(nil, r.Lines), true
	case r.HTML == nil && r.HTMLBase64 == nil:
		return robotstag.Tags{}, false
	}
	if r.ContentType != "" && !slices.Contains([]string{"text/html", "application/xhtml+xml"}, htmlmeta.MediaType(r.ContentType)) {
		return robotstag.Tags{}, true
	}
	page := r.HTMLBase64
	if page == nil {
		page = []byte(*r.HTML)
	}
	res, err := htmlmeta.Scan(bytes.NewReader(page), htmlmeta.Options{ContentType: r.ContentType})
	if err != nil {
		t.Error(err)
	}
	var tags []robotstag.Tags
	for _, m := range res.Metas {
		tags = append(tags, robotstag.ParseMeta(m.Name, m.Content))
	}
	return robotstag.Union(tags...), true
}
