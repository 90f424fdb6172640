package robotstxt

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

const recordsFile = `License: https://example.com/all.xml
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

// TestRecords checks that a record of any name is found by it, with its group, line and
// value.
func TestRecords(t *testing.T) {
	f := Parse([]byte(recordsFile), 0)
	show := func(r Record) string { return fmt.Sprintf("%d %s: %s", r.Line, r.Name, r.Value) }
	for _, test := range []struct {
		token, name string // token "" is the whole file
		want        []string
	}{
		{"", "license", []string{"1 License: https://example.com/all.xml"}},
		{"", "SITEMAP", []string{"11 Sitemap: https://example.com/1.xml", "14 Sitemap: https://example.com/2.xml"}},
		{"a", "content-usage", []string{"3 Content-Usage: train-ai=n", "7 content-usage: /y search=n"}},
		{"b", "content-usage", []string{"3 Content-Usage: train-ai=n", "7 content-usage: /y search=n", "16 Content-Usage: "}},
		{"a", "Crawl-Delay", nil},
		{"b", "Crawl-Delay", []string{"5 Crawl-delay: 2"}},
		{"c", "content-usage", []string{"10 Content-Usage: train-ai=y"}},
		{"other", "content-usage", []string{"10 Content-Usage: train-ai=y"}},
		{"a", "license", nil},
		{"a", "disallow", nil},
		{"", "", nil},
		{"", "content-usag", nil},
	} {
		records := f.Records(test.name)
		if test.token != "" {
			records = f.Group(test.token).Records(test.name)
		}
		var got []string
		for r := range records {
			got = append(got, show(r))
			if r.InGroup != (r.Line > 1) {
				t.Errorf("%s: in a group %v", show(r), r.InGroup)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s of %q: got %q, want %q", test.name, test.token, got, test.want)
		}
	}
	for r := range (Group{}).Records("Crawl-delay") {
		t.Errorf("the zero Group has %v", r)
	}
}

// TestRecordsBounded checks that a file full of records takes little memory and time.
func TestRecordsBounded(t *testing.T) {
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
		for i := range f.records {
			count++
			if line := int(f.records[i].line); line < 2 || line > maxRecords+1 {
				t.Fatalf("%s: line %d is kept, want the first %d", name, line, maxRecords)
			}
		}
		t.Logf("%s: %d records, %v", name, count, took)
		if count != maxRecords {
			t.Errorf("%s: %d records, want %d", name, count, maxRecords)
		}
	}
	// A File without records has no more memory for them than the empty slice.
	without := strings.ReplaceAll(typicalFile, "Sitemap:", "#")
	if f := Parse([]byte(strings.ReplaceAll(without, "Crawl-delay", "#")), 0); f.records != nil {
		t.Errorf("%d records in a file that has none", len(f.records))
	}
}

// TestRecordsKept checks that lines without a meaning do not hide what a site states.
func TestRecordsKept(t *testing.T) {
	data := "User-agent: *\n" + strings.Repeat("a:b\n", 2*maxRecords) + "content-usage: train-ai=n\nContent-Signal: x\nLICENSE: y\nCrawl-delay: 3\nSitemap: /s\n"
	g := Parse([]byte(data), 0).Group()
	for name, want := range map[string]bool{"Content-Usage": true, "Content-Signal": true, "License": true, "Crawl-delay": true, "Sitemap": false} {
		if got := g.HasRecord(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for name, line := range map[string]string{"License": "License:\n", "Content-Usage": "Content-Usage:\n"} {
		data := fileOf(func(int) string { return line })
		start := gatetest.CPUTime(t)
		f := Parse(data, 0)
		if took, extra := gatetest.CPUTime(t)-start, f.Size()-len(data); extra > 3<<20 || took.Seconds() > 1 {
			t.Errorf("%s: %d bytes beside the file, %v", name, extra, took)
		}
	}
}

func TestHasRecord(t *testing.T) {
	f := Parse([]byte("License: a\nUser-agent: a\nCONTENT-usage: x\nUser-agent: *\nSitemap: b\nDisallow:\n\nUser-agent: b\nFoo: c\n"), 0)
	for _, test := range []struct {
		name          string
		file, a, b, g bool // in the file, the groups of a and b, no group
	}{
		{"license", true, false, false, false},
		{"Content-Usage", true, true, false, false},
		{"Sitemap", true, true, false, false},
		{"foo", true, false, true, false},
		{"Content-Signal", false, false, false, false},
		{"Cicense", false, false, false, false},
		{"", false, false, false, false},
	} {
		got := [4]bool{f.HasRecord(test.name), f.Group("a").HasRecord(test.name), f.Group("b").HasRecord(test.name), Group{}.HasRecord(test.name)}
		if want := [4]bool{test.file, test.a, test.b, test.g}; got != want {
			t.Errorf("%q: got %v, want %v", test.name, got, want)
		}
	}
}
