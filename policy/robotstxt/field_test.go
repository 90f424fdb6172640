package robotstxt

import (
	"fmt"
	"slices"
	"testing"

	"robotsgate/internal/gatetest"
)

const fieldsFile = `License: https://example.com/all.xml
User-agent: a
Content-Usage: train-ai=n
User-agent: b
crawldelay: 2
Disallow: /x
content-usage: /y search=n # not found

User-agent: *
Content-Usage: train-ai=y
Sitemap: https://example.com/1.xml
User-agent: c
Disallow: /
Site-map: https://example.com/2.xml
User-agent: B
Content-Usage:
`

// TestFields checks that a field of any name is found by it, with its group, line and
// value.
func TestFields(t *testing.T) {
	f := Parse([]byte(fieldsFile), 0)
	show := func(r Field) string { return fmt.Sprintf("%d %s: %s", r.Line, r.Name, r.Value) }
	for _, test := range []struct {
		token, name string // token "" is the whole file
		want        []string
	}{
		{"", "license", []string{"1 License: https://example.com/all.xml"}},
		{"", "SITEMAP", []string{"11 Sitemap: https://example.com/1.xml", "14 Sitemap: https://example.com/2.xml"}},
		{"a", "content-usage", []string{"3 Content-Usage: train-ai=n"}},
		{"b", "content-usage", []string{"7 content-usage: /y search=n", "16 Content-Usage: "}},
		{"a", "Crawl-Delay", nil},
		{"b", "Crawl-Delay", []string{"5 Crawl-delay: 2"}},
		{"c", "content-usage", nil},
		{"other", "content-usage", []string{"10 Content-Usage: train-ai=y"}},
		{"a", "license", nil},
		{"a", "disallow", nil},
		{"", "", nil},
		{"", "content-usag", nil},
	} {
		fields := f.Fields(test.name)
		if test.token != "" {
			fields = f.Group(test.token).Fields(test.name)
		}
		var got []string
		for r := range fields {
			got = append(got, show(r))
			if r.InGroup != (r.Line > 1) {
				t.Errorf("%s: in a group %v", show(r), r.InGroup)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s of %q: got %q, want %q", test.name, test.token, got, test.want)
		}
	}
	for r := range (Group{}).Fields("Crawl-delay") {
		t.Errorf("the zero Group has %v", r)
	}
}

// TestFieldsBounded checks that a file full of fields takes little memory and time.
func TestFieldsBounded(t *testing.T) {
	for name, line := range map[string]func(i int) string{
		"short":          func(int) string { return "a:b\n" },
		"distinct names": func(i int) string { return fmt.Sprintf("%d:b\n", i) },
		"descending":     func(i int) string { return fmt.Sprintf("%d:b\n", 999999-i) },
		"sitemaps":       func(int) string { return "Sitemap:/\n" },
	} {
		data := fileOf(line)
		start := gatetest.CPUTime(t)
		f := Parse(data, 0)
		took := gatetest.CPUTime(t) - start
		if extra := f.Size() - len(data); extra > 800<<10 {
			t.Errorf("%s: %d bytes beside the file", name, extra)
		}
		count := 0
		for i := range f.fields {
			count++
			if line := int(f.fields[i].line); line < 2 || line > 16_384+1 {
				t.Fatalf("%s: line %d is kept, want the first %d", name, line, 16_384)
			}
		}
		t.Logf("%s: %d records, %v", name, count, took)
		if count != 16_384 {
			t.Errorf("%s: %d records, want %d", name, count, 16_384)
		}
	}
}
