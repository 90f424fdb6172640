package bundle

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"robotsgate/internal/audit"
	"robotsgate/internal/evidence"
	"robotsgate/policy"
)

// TestReport compares the structure of a report with testdata/report.txt: its sections, and how many rows, bars, lines
// and links there are. The log spans days, and its text tries to be HTML. Nothing may be loaded from elsewhere.
func TestReport(t *testing.T) {
	const hostile = `<script>alert(1)</script>"'&amp;` + "\u202e"
	k := newKept(t, 3)
	c, err := parse(k.config)
	if err != nil {
		t.Fatal(err)
	}
	w := newLog(t, "crawl.example.com/gate-1")
	w.checkpoint(t, true)
	for i := range 60 {
		path := []string{"/page", "/private/plans", "/a?q=%3Cb%3E", "/news", "/robots.txt"}[i%5]
		w.entry(k.entry(t, c, i, origin(i%3), path, noon.Add(time.Duration(i)*5*time.Hour+time.Minute)))
	}
	w.checkpoint(t, false, witness(t, "witness.example"))
	keys := w.keys(t, witness(t, "witness.example").Verifier().String())
	collector, logs := collect(t, &audit.Filter{Since: noon}, keys, w.Bytes())
	bundle, _ := write(t, collector, options(k, logs, keys, "What we did "+hostile, hostile))
	_, contents := members(t, bundle)
	got := structure(t, contents[reportName])
	want, err := os.ReadFile("testdata/report.txt")
	if err != nil || got != string(want) {
		t.Errorf("got\n%s\nwant\n%s%v", got, want, err)
	}
	for _, text := range []string{"\u202e", "<script"} {
		if strings.Contains(contents[reportName], text) {
			t.Errorf("the report has %q", text)
		}
	}
}

func options(k *kept, logs []evidence.Report, keys *evidence.Keys, title string, selection ...string) Options {
	return Options{Title: title, Selection: selection, Program: "test", Made: noon, Logs: logs, Keys: keys, KeyTexts: []string{"crawl.example.com/gate-1+00000000+AQ=="}, Evidence: k, Parse: parse}
}

// structure returns for each section of a page its heading, and the numbers of elements in it. It reports elements that
// load something, and links to places that are not there.
func structure(t *testing.T, page string) string {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	ids, links := map[string]bool{}, []string{}
	counts := map[string]int{}
	section := ""
	flush := func() {
		defer clear(counts)
		if section == "" {
			return
		}
		text.WriteString(section)
		for _, name := range []string{"table", "tr", "rect", "li", "a"} {
			if counts[name] > 0 {
				fmt.Fprintf(&text, " %s=%d", name, counts[name])
			}
		}
		text.WriteString("\n")
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if slices.Contains([]atom.Atom{atom.Script, atom.Link, atom.Img, atom.Iframe, atom.Object, atom.Form, atom.Base}, n.DataAtom) {
			t.Errorf("the report has the element %s", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				if ids[a.Val] {
					t.Errorf("two elements have the id %s", a.Val)
				}
				ids[a.Val] = true
			case a.Key == "href":
				links = append(links, a.Val)
			case strings.HasPrefix(a.Key, "on"), a.Key == "src":
				t.Errorf("the report has the attribute %s=%q", a.Key, a.Val)
			}
		}
		if n.DataAtom == atom.Section {
			flush()
			section = n.Attr[0].Val
		}
		counts[n.Data]++
	}
	flush()
	for _, link := range links {
		if id, local := strings.CutPrefix(link, "#"); !local || !ids[id] {
			t.Errorf("the report links to %s", link)
		}
	}
	return text.String()
}

// TestReportAddsUp: the numbers of a row add up to its requests, also in report mode, and only a decision by the site's own
// file links to it.
func TestReportAddsUp(t *testing.T) {
	p := newReport()
	p.version("digest")
	decided := func(decision string, reason policy.Reason, enforced bool) {
		r := &audit.Entry{Time: noon, Crawler: "bot", Decision: decision, Reason: reason, Enforced: &enforced}
		p.entry(r, 1)
		p.Rows[len(p.Rows)-1].digest = "digest"
		p.link(&p.Rows[len(p.Rows)-1])
	}
	decided("allow", policy.NoMatch, true)
	decided("deny", policy.ByRule, false)
	decided("deny", policy.ByOverride, true)
	p.Crawlers = p.Summary.Crawlers.Top(1)
	var page strings.Builder
	if err := reportPage.Execute(&page, p); err != nil {
		t.Fatal(err)
	}
	const n = `<td class="n">`
	if want := `<td>bot</td>` + n + `3</td>` + n + `1</td>` + n + `1</td>` + n + `1</td></tr>`; !strings.Contains(page.String(), want) {
		t.Errorf("no %s in\n%s", want, page.String())
	}
	if p.Rows[0].Link == "" || p.Rows[1].Link == "" || p.Rows[2].Link != "" {
		t.Errorf("links %q, %q, %q", p.Rows[0].Link, p.Rows[1].Link, p.Rows[2].Link)
	}
}
