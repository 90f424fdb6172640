package robotstag_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"robotsgate/htmlmeta"
	"robotsgate/internal/gatetest"
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

func TestConformance(t *testing.T) {
	gatetest.Conformance(t, func(t *testing.T, where string, line []byte) bool {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		if r.Rules == nil {
			return false
		}
		tags, ok := r.read(t)
		if !ok {
			return false
		}
		if got := robotstag.Effective(tags.For(r.ProductToken)); !slices.Equal(got, *r.Rules) {
			t.Errorf("%s: %s: got %v, want %v", where, r.Why, got, *r.Rules)
		}
		return true
	})
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
