package robotstxt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/canonical"
)

// TestArchives checks the package against testdata/*.txtar. Each archive begins with a
// sentence about what it shows, and has a robots.txt or, for bytes that an editor would
// not keep, a robots.quoted: one Go string a line, joined without line ends. The expected
// results are in
//
//	want      lines of product tokens (joined by commas), a URL and the verdict:
//	          allow or deny with the line of the rule, or the reason there is none
//	delay     lines of product tokens and the Crawl-delay with its line, or none
//	sitemaps  the sitemaps, one a line
//	records   the unknown fields, as line, key and value
func TestArchives(t *testing.T) { gatetest.Archives(t, "*.txtar", archive) }

func archive(t *testing.T, ar *txtar.Archive) {
	var f *File
	for _, part := range ar.Files {
		text := string(part.Data)
		switch part.Name {
		case "robots.txt":
			f = Parse(part.Data, 0)
		case "robots.quoted":
			f = Parse([]byte(strings.Join(gatetest.Unquote(t, text), "")), 0)
		case "want":
			eachLine(text, func(line string) { checkVerdict(t, f, line) })
		case "delay":
			eachLine(text, func(line string) { checkDelay(t, f, line) })
		case "sitemaps":
			var got strings.Builder
			for r := range f.Fields("sitemap") {
				if r.Value != "" {
					got.WriteString(r.Value + "\n")
				}
			}
			if got.String() != text {
				t.Errorf("sitemaps: got %q, want %q", got.String(), text)
			}
		case "records":
			var got strings.Builder
			for _, r := range otherFields(f) {
				fmt.Fprintf(&got, "%d %s: %s\n", r.Line, r.Name, r.Value)
			}
			if got.String() != text {
				t.Errorf("records: got %q, want %q", got.String(), text)
			}
		default:
			t.Errorf("unknown part %q", part.Name)
		}
	}
}

// otherFields returns the fields whose names the package does not know, by line.
func otherFields(f *File) (others []Field) {
	for i := range f.fields {
		if r := &f.fields[i]; r.name != "Crawl-delay" && r.name != "Sitemap" {
			others = append(others, r.public())
		}
	}
	slices.SortStableFunc(others, func(a, b Field) int { return a.Line - b.Line })
	return others
}

func checkVerdict(t *testing.T, f *File, line string) {
	t.Helper()
	tokens, rest, _ := strings.Cut(line, " ")
	i := strings.LastIndexByte(rest, ' ')
	if i < 0 {
		t.Errorf("malformed line %q", line)
		return
	}
	url, want := rest[:i], rest[i+1:]
	v := f.Decide(canonical.PathOf(url), strings.Split(tokens, ",")...)
	got := string(v.Reason)
	if v.Reason == ByRule {
		got = map[bool]string{true: "allow:", false: "deny:"}[v.Allowed] + strconv.Itoa(v.Rule.Line)
	} else if !v.Allowed {
		t.Errorf("%s: denied without a rule", line)
	}
	if got != want {
		t.Errorf("%s %s: got %s, want %s", tokens, url, got, want)
	}
}

func checkDelay(t *testing.T, f *File, line string) {
	t.Helper()
	tokens, want, _ := strings.Cut(line, " ")
	got := "none"
	if seconds, line, ok := f.Group(strings.Split(tokens, ",")...).CrawlDelay(); ok {
		got = fmt.Sprintf("%v:%d", seconds, line)
	}
	if got != want {
		t.Errorf("Crawl-delay of %s: got %s, want %s", tokens, got, want)
	}
}

func eachLine(text string, do func(string)) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			do(line)
		}
	}
}
