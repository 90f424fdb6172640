package lint

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/robotstxt/internal/syntax"
	"robotsgate/policy/usage"
)

// TestLint checks Check and Fix against testdata/*.txtar. Each archive begins with a
// sentence about what it shows, and has a robots.txt or a robots.quoted (one Go string a
// line) and want: the findings, as "LINE: RANK: TEXT". It may have limit, in bytes, and
// fixed, the file that Fix returns, if that differs.
func TestLint(t *testing.T) {
	gatetest.Archives(t, "*.txtar", func(t *testing.T, ar *txtar.Archive) {
		var robots, fixed []byte
		var want string
		limit := 0
		for _, part := range ar.Files {
			switch part.Name {
			case "robots.txt":
				robots = part.Data
			case "robots.quoted":
				robots = []byte(strings.Join(gatetest.Unquote(t, string(part.Data)), ""))
			case "limit":
				if _, err := fmt.Sscan(string(part.Data), &limit); err != nil {
					t.Fatal(err)
				}
			case "want":
				want = string(part.Data)
			case "fixed":
				fixed = part.Data
			default:
				t.Errorf("unknown part %q", part.Name)
			}
		}
		if got := findings(Check(robots, limit)); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		if fixed == nil {
			fixed = robots
		}
		if got := Fix(robots); !bytes.Equal(got, fixed) {
			t.Errorf("fixed: got\n%swant\n%s", got, fixed)
		}
	})
}

func findings(list []Finding) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%d: %s: %s\n", f.Line, f.Rank, f.Text)
	}
	return b.String()
}

// TestLintClean checks that a correct file has no findings.
func TestLintClean(t *testing.T) {
	for name, robots := range map[string]string{
		"empty":    "",
		"comments": "# nothing\n\n   # at all\n",
		"example of RFC 9309": "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n" +
			"User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n" +
			"User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\nDisallow: *.gif$\nDisallow: /example/\n\nUser-Agent: quxbot\nDisallow:\n",
		"allow all":       "User-agent: *\nDisallow:\n",
		"deny all":        "User-agent: *\nDisallow: /\n\nUser-agent: ExampleBot\nDisallow: /private/\n",
		"ends of lines":   "User-agent: *\rDisallow: /a\rDisallow: /b",
		"delay":           "User-agent: *\nCrawl-delay: 2.5\n",
		"sitemap":         "Sitemap: https://example.com/sitemap.xml\n",
		"own rules":       "User-agent: *\nDisallow: /search\n\nUser-agent: ExampleBot\nAllow: /search\nDisallow: /x\n",
		"encoded":         "User-agent: *\nDisallow: /%C3%A4%2F%24%2A?a=b&c=[d]\n",
		"narrower before": "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /*.css$\n",
		"usage": "License: https://example.com/all.xml\nUser-agent: ExampleBot\nContent-Usage: train-ai=n;x, search=y, extra=n\n" +
			"Content-usage: /a/ ai-use=n\nLicense: https://example.com/l.xml\nDisallow: /x\n\n" +
			"User-agent: *\nContent-Usage: /open/\nContent-Signal: /a Search=YES, ai-train=no, use=reference\nDisallow: /x\nLicense: http://example.com\n",
		"usage only": "User-agent: *\nContent-Usage: train-ai=n\n",
		"spaces":     "  User-agent : *\t# all\n\tDisallow\t:\t/a\t\n",
	} {
		if got := Check([]byte(robots), 0); len(got) > 0 {
			t.Errorf("%s: got\n%s", name, findings(got))
		}
	}
}

// TestLintHostile checks that no file of 20,000 lines takes long, or gets more
// findings than its bound. Under the race detector the files have fewer lines.
func TestLintHostile(t *testing.T) {
	repeat := func(lines ...string) string {
		var b strings.Builder
		for i := range gatetest.Rounds(20000) / len(lines) {
			for _, line := range lines {
				b.WriteString(strings.ReplaceAll(line, "%d", fmt.Sprint(i)) + "\n")
			}
		}
		return b.String()
	}
	// Quadratic time would be minutes. The race detector takes several times as long.
	most := time.Duration(gatetest.Size(3, 1)) * time.Second
	for name, robots := range map[string]string{
		"plain":              repeat("Disallow: /a%d"),
		"stars":              repeat("Disallow: /" + strings.Repeat("*a", 18) + "*b"),
		"stars, other rules": repeat("Disallow: /*a*aa*%d*a*aaa*a*b", "Allow: /a%d*aa*"),
		"broad and narrow":   repeat("Disallow: /a%d", "Allow: /*a*%d*********b"),
		"repeated":           repeat("Disallow: /a"),
		"nested":             repeat("Disallow: /" + strings.Repeat("a", 100) + "*%d"),
		"no records":         repeat("hello"),
		"misspelt":           repeat("Usr-agnt: x", "Disal%d: /"),
		"names":              repeat("User-agent: b%d"),
		"groups":             repeat("Disallow: /%d") + repeat("User-agent: b%d", "Disallow: /1"),
		"all in company":     repeat("Disallow: /%d") + repeat("User-agent: a", "User-agent: b%d", "Disallow: /c%d"),
		"company alternates": repeat("User-agent: a", "Disallow: /", "User-agent: b", "Disallow: /"),
		"many of a few":      "User-agent: x\n" + repeat("User-agent: b%d") + repeat("Disallow: /%d") + repeat("User-agent: b%d", "Disallow: /x"),
		"delays":             repeat("Crawl-delay: %d"),
		"one line":           "Disallow: /" + strings.Repeat("*a b:", 200000),
		"percent":            "Disallow: /" + strings.Repeat("%%6", 200000),
		"one long line":      strings.Repeat("User-agent", 100000),
		"NULs":               strings.Repeat("a\x00b", 200000),
		"usage":              repeat("Content-Usage: a%d=n, trainai=y, search=x", "Content-Signal: ai-trains=n, b%d", "License: l%d"),
		"usage, one line":    "Content-Usage: " + strings.Repeat("serach=y, ", 12000) + "x\nContent-Usage: " + strings.Repeat("A=no, ", 100000),
		"usage, long label":  "Content-Usage: " + strings.Repeat("a", 100000) + "=n\nContent-Signal: " + strings.Repeat("train-ai=x,", 100000),
		"stars in a row":     "Disallow: /" + strings.Repeat("*", 500000) + "b\nAllow: /b\n",
	} {
		data := []byte("User-agent: *\n" + robots)
		start := gatetest.CPUTime(t)
		got := Check(data, len(data))
		took := gatetest.CPUTime(t) - start
		t.Logf("%s: %d bytes, %v, %d findings", name, len(data), took, len(got))
		if took > most || len(got) > 200 {
			t.Errorf("%s: %v, %d findings", name, took, len(got))
		}
		for _, f := range got {
			if len(f.Text) > 2000 {
				t.Errorf("%s: a finding of %d bytes", name, len(f.Text))
			}
		}
	}
}

// FuzzLint checks the promises of Finding, and that a file without findings has no line
// that is ignored.
func FuzzLint(f *testing.F) {
	f.Add([]byte("User-agent: *\nDisallow: /a\nAllow: /a*\n\nUser-agent: a\nfoo\nDisalow: b\n"), 0, "/a")
	f.Add([]byte("User-agent: *\rDisallow: /*a**b$\r\nCrawl-delay: 1\x00Crawl-delay: 2"), 30, "/ab")
	f.Add([]byte("License: http://a\nUser-agent: *\nContent-Usage: train-ai=n\nContent-Signal: /a search=no\n"), 0, "/a")
	f.Add([]byte("\xff\xfea\x00:\x00b\x00\n\x00"), 3, "/")
	f.Add([]byte("\xff\xfe\x00"), 1, "/")
	f.Add([]byte("User-agent: *\nDisallow: /?a=http://b\nAllow: /*//b\nDisallow: */a\nAllow: /*/*a\n"), 0, "/?a=http%3A%2F%2Fb")
	f.Fuzz(func(t *testing.T, data []byte, limit int, path string) {
		got := Check(data, limit)
		lines := 1 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r"))
		last := Finding{Line: 1}
		for _, f := range got {
			if f.Rank < last.Rank || f.Rank == last.Rank && f.Line < last.Line || f.Line > lines {
				t.Errorf("line %d, %s, after line %d, %s, of %d", f.Line, f.Rank, last.Line, last.Rank, lines)
			}
			last = f
			if f.Text == "" || len(f.Text) > 2000 || strings.ContainsFunc(f.Text, func(r rune) bool { return !strconv.IsPrint(r) }) {
				t.Errorf("line %d: %q", f.Line, f.Text)
			}
			if strings.Contains(f.Text, "%!") && !bytes.Contains(data, []byte("%")) {
				t.Errorf("line %d: a verb without its argument: %q", f.Line, f.Text)
			}
		}
		if limit <= 0 {
			limit = leastLimit
		}
		if len(got) == 0 {
			nothingIgnored(t, data, limit)
		}
		if syntax.Decode(append(bytes.Clone(data), 0), 0).Order == nil { // of UTF-16 it would be half a line end
			if again := Check(append(bytes.Clone(data), '\n'), limit); !slices.Equal(got, again) {
				t.Errorf("got\n%swith one more line end\n%s", findings(got), findings(again))
			}
			uselessRules(t, string(data), got, path)
		}
	})
}

// nothingIgnored checks that every line of a file has a meaning.
func nothingIgnored(t *testing.T, data []byte, limit int) {
	s := syntax.Decode(data, limit).Scan()
	began := false
	for s.NextLine() {
		content, _, _ := strings.Cut(s.Content, "#")
		if strings.Trim(content, syntax.Space) == "" {
			continue
		}
		if !s.Split() {
			t.Errorf("no finding for line %d, which is not a record: %q", s.Line, content)
			continue
		}
		ignored := !s.Known
		switch strings.ToLower(s.Key) {
		case "content-usage":
			_, ok := usage.ParseLine(usage.ContentUsage, s.Value)
			ignored = !began || !ok
		case "content-signal":
			_, ok := usage.ParseLine(usage.ContentSignal, s.Value)
			ignored = !began || !ok
		case "license":
			ignored = !usage.ReadableLicense(s.Value)
		}
		switch s.Name {
		case syntax.UserAgent:
			began = true
			long := syntax.TokenName(s.Value)
			ignored = long == "" && !syntax.IsEveryone(s.Value)
		case syntax.Allow:
			ignored = !began || s.Value == "" || strings.IndexByte("/*", s.Value[0]) < 0
		case syntax.Disallow:
			ignored = !began || s.Value != "" && strings.IndexByte("/*", s.Value[0]) < 0
		case syntax.CrawlDelay:
			_, ok := syntax.ParseDelay(s.Value)
			ignored = !began || !ok
		case syntax.Sitemap:
			ignored = s.Value == ""
		}
		if ignored {
			t.Errorf("no finding for line %d, which does nothing: %q", s.Line, content)
		}
	}
}

// uselessRules checks that decisions stay the same when all rules are emptied that have a
// finding which says that they do nothing.
func uselessRules(t *testing.T, robots string, got []Finding, path string) {
	if strings.ContainsAny(robots, "\r\x00") || len(robots) > leastLimit {
		return
	}
	lines := strings.Split(robots, "\n")
	for _, f := range got {
		for _, says := range []string{"the rule never decides", "the rule says the same", "so the rule never matches", "this one never matches", "so the rule does nothing"} {
			if strings.Contains(f.Text, says) {
				lines[f.Line-1] = "Disallow:"
			}
		}
	}
	without := robotstxt.Parse([]byte(strings.Join(lines, "\n")), 0)
	with := robotstxt.Parse([]byte(robots), 0)
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	path = robotstxt.PathOf(path) // without dot segments
	for _, token := range []string{"a", "b", "other"} {
		if got, want := without.Decide(path, token), with.Decide(path, token); got.Allowed != want.Allowed {
			t.Errorf("%q for %q: %v by line %d in\n%s\nbut %v by line %d without the useless rules\n%s",
				path, token, want.Allowed, want.Rule.Line, robots, got.Allowed, got.Rule.Line, strings.Join(lines, "\n"))
		}
	}
}

// TestLintUseless checks uselessRules with files that have many useless rules.
func TestLintUseless(t *testing.T) {
	rng := rand.New(rand.NewPCG(2026, 9309))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	random := func(n int) (s string) {
		for range rng.IntN(n) {
			s += pick("a", "a", "b", "/", "*", "*", "$", "?", ":", "%2F", "%61", ".")
		}
		return s
	}
	useless := 0
	for range gatetest.Rounds(1500) {
		var robots strings.Builder
		for range 1 + rng.IntN(12) {
			robots.WriteString(pick("User-agent: *\n", "User-agent: a\n", "User-agent: b\n"))
			for range rng.IntN(8) {
				robots.WriteString(pick("Allow: ", "Disallow: ") + pick("/", "/", "/", "*", "") + random(5) + "\n")
			}
		}
		got := Check([]byte(robots.String()), 0)
		useless += len(got)
		for range 20 {
			uselessRules(t, robots.String(), got, "/"+strings.ReplaceAll(random(8), "*", "ab"))
		}
		if t.Failed() {
			return
		}
	}
	if useless < gatetest.Rounds(5000) {
		t.Errorf("only %d findings", useless)
	}
}
