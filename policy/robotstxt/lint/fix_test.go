package lint

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/robotstxt/internal/syntax"
)

// TestRealFiles checks Fix with the real files in the folder that ROBOTSGATE_REALFILES names, as
// they are and damaged in ways that Fix mends. It takes some of them, all with ROBOTSGATE_LONG=1.
func TestRealFiles(t *testing.T) {
	dir := os.Getenv("ROBOTSGATE_REALFILES")
	if dir == "" {
		t.Skip("ROBOTSGATE_REALFILES names no folder with robots.tar.xz")
	}
	rng := gatetest.Random(t)
	files, fixed := 0, 0
	check := func(name string, data []byte) {
		if !bytes.Equal(Fix(data), data) {
			fixed++
		}
		if err := fixChangesNothing(rng, data, "/", gatetest.Size(40, 100)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	all := realFiles(t, filepath.Join(dir, "robots.tar.xz"))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if rng.IntN(gatetest.Size(20, 1)) > 0 {
			continue
		}
		files++
		check(name, all[name])
		check(name+", damaged", damage(rng, all[name]))
	}
	t.Logf("%d files; of these and as many damaged ones, %d were corrected", files, fixed)
	if files < 100 || fixed < files/2 {
		t.Errorf("only %d files, of which %d were corrected", files, fixed)
	}
}

// realFiles reads the files of an archive.
func realFiles(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	unpack := exec.Command("xz", "--decompress", "--stdout", archive)
	out, err := unpack.Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("xz is not installed")
	}
	if err != nil {
		t.Fatalf("%s: %v", archive, err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// damage changes a file in ways that are common in files, of which Fix mends some. It may
// change the meaning of the file.
func damage(rng *rand.Rand, data []byte) []byte {
	var out strings.Builder
	if rng.IntN(4) == 0 {
		out.WriteString("\xEF\xBB\xBF"[:1+rng.IntN(3)])
	}
	end := []string{"\n", "\r\n", "\r", "\n\n"}[rng.IntN(4)]
	for _, line := range robotstxt.Lines(string(data)) {
		for rng.IntN(2) == 0 {
			line = damageLine(rng, line)
		}
		if rng.IntN(2000) == 0 {
			line += "\x00"
		}
		out.WriteString(line + end)
	}
	return []byte(out.String())
}

func damageLine(rng *rand.Rand, line string) string {
	key, value, _ := strings.Cut(line, ":")
	misspelt := map[string][]string{
		"user-agent": {"Useragent", "USER AGENT", "User-agent ", "Usr-agent"}, "disallow": {"Disalow", "dissallow", "\tdisallaw", "Disallow\t"},
		"allow": {"allow", "Alow"}, "crawl-delay": {"crawldelay"}, "sitemap": {"Site-map"},
	}[strings.ToLower(key)]
	at := rng.IntN(len(line) + 1)
	switch rng.IntN(9) {
	case 0, 1:
		if misspelt != nil {
			return misspelt[rng.IntN(len(misspelt))] + ":" + value
		}
	case 2:
		return strings.Replace(line, ":", " ", 1)
	case 3:
		return line + []string{"/1.0", "*", " # a", "#b", "$", "*$", "ä", "/%7e", "%c3%a4", "\xe4", "%", "%4", " b", "/../c", ";v=1"}[rng.IntN(15)]
	case 4:
		if at < len(line) {
			return fmt.Sprintf("%s%%%02x%s", line[:at], line[at], line[at+1:])
		}
	case 5:
		return line[:at] + []string{"ö", "%2f", "%2F", "*", "$", "\t", "%", "\u00a0", "|", ";", "//", ":", "#", "\\", "\uFEFF"}[rng.IntN(15)] + line[at:]
	case 6:
		return line[:at]
	case 7:
		return []string{"User-agent: a", "User-agent: b/2", "Crawl-delay: 3", "crawldelay 4", "Allow:", "Disallow:", "", "#", "hello world",
			"Content-Usage train-ai=n", "License https://a.example/l"}[rng.IntN(11)]
	}
	return line
}

// TestFixRandom checks Fix with files that are composed of lines at random.
func TestFixRandom(t *testing.T) {
	rng := gatetest.Random(t)
	fixed := 0
	for range gatetest.Size(2000, 20000) {
		data := bytes.Repeat([]byte("\n"), 1+rng.IntN(20))
		for range 1 + rng.IntN(4) {
			data = damage(rng, data) // makes fields of empty lines, and damages these
		}
		if !bytes.Equal(Fix(data), data) {
			fixed++
		}
		if err := fixChangesNothing(rng, data, "/", 500); err != nil {
			t.Fatalf("%v in\n%q", err, data)
		}
	}
	if fixed < 500 {
		t.Errorf("only %d files were corrected", fixed)
	}
}

// TestFixSize checks that a correction does not move a line beyond the limit of crawlers, or before it.
func TestFixSize(t *testing.T) {
	long := "User-agent: *\nDisallow: /" + strings.Repeat("ä", leastLimit/4) + "\n"
	tail := "Disalow: /b\n"
	for name, data := range map[string]string{
		"longer than the limit":       strings.Repeat("#", leastLimit-20) + "\n" + tail + tail,
		"corrected, it would be":      long,
		"corrected, too much to read": "\xEF\xBB\xBF" + strings.Repeat("#", leastLimit-1) + "\n" + tail,
	} {
		if got := Fix([]byte(data)); string(got) != data {
			t.Errorf("%s: got a correction", name)
		}
	}
}

// FuzzFix checks Fix with any file, and with a path besides those that its rules make.
func FuzzFix(f *testing.F) {
	for _, seed := range []string{
		"User-agent: *\nDisalow: /a\nAllow: /%61*\n\nUseragent: a/1\nDisallow /%c3%a4 # b\nCrawl-delay: 3\nUser-agent: b\n",
		"\xEF\xBB\xBF\xEF\xBB\xBFUser-agent: *\rDisallow: /ä\r\ncrawldelay 1\x00Crawl-delay: 2",
		"\xEF\xFF\xFEUseragent: *\nDisallow: /\n",
		"\xff\xfeU\x00:\x00*\x00\n\x00",
		"User-agent: a\nAllow:\nUser-agent: b\nDisallow: /a\\b|c\nDisallow: /d$e%7E\nAllow: /\xe4%7e\nDisallow:/%%37e\n",
		"Content-usage =",
		"User agent: *\nContent-Usage train-ai=n\nDisallow: /?a=http%3a//b\nDisallow: */%2e%2e/a\nDisallow: / *\nDisallow: /$*\n",
	} {
		f.Add([]byte(seed), "/a%2fb;c")
	}
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		if err := fixChangesNothing(rand.New(rand.NewPCG(1, 1)), data, path, 30); err != nil {
			t.Errorf("%v in\n%q", err, data)
		}
	})
}

// fixChangesNothing returns an error if Fix changes a decision, a delay, a preference or a line
// that it should not. It tries a number of paths with every crawler that the file names.
func fixChangesNothing(rng *rand.Rand, data []byte, path string, paths int) error {
	fixed := Fix(data)
	if again := Fix(fixed); !bytes.Equal(again, fixed) {
		return fmt.Errorf("corrected once: %q\ntwice: %q", fixed, again)
	}
	if bytes.Equal(fixed, data) {
		return nil
	}
	before, after := robotstxt.Parse(data, leastLimit), robotstxt.Parse(fixed, leastLimit)
	if err := errors.Join(sameLines(before.Body(), after.Body()), advice(data, fixed)); err != nil {
		return err
	}
	tokens := append(slices.Collect(before.Names()), "*", "OtherBot")
	if got := append(slices.Collect(after.Names()), "*", "OtherBot"); !slices.Equal(got, tokens) {
		return fmt.Errorf("the names are %q, and were %q", got, tokens)
	}
	for _, token := range tokens {
		was, is := stated(before.Group(token)), stated(after.Group(token))
		if was != is {
			return fmt.Errorf("for %q: got\n%s, before\n%s", token, is, was)
		}
	}
	tries := append(derivedPaths(rng, before, paths), path)
	for n, path := range tries {
		for i := range min(len(tokens), 8) {
			token := tokens[(n*8+i)%len(tokens)]
			if was, is := allowed(before, path, token), allowed(after, path, token); was != is {
				return fmt.Errorf("%q for %q: allowed %v, before %v", path, token, is, was)
			}
		}
	}
	return nil
}

// stated returns what a group states: its rules in the form in which they are compared, its delay,
// and its fields about use.
func stated(g robotstxt.Group) string {
	var b strings.Builder
	rules := slices.Collect(g.Rules())
	slices.SortFunc(rules, func(a, b robotstxt.Rule) int { return cmp.Compare(a.Line, b.Line) })
	for _, r := range rules {
		fmt.Fprintln(&b, r.Line, r.Allow, robotstxt.NewPattern(r.Pattern))
	}
	fmt.Fprintln(&b, g.Name())
	seconds, line, ok := g.CrawlDelay()
	fmt.Fprintln(&b, seconds, line, ok)
	for _, name := range []string{syntax.CrawlDelay, "Content-Usage", "Content-Signal", "License"} {
		for r := range g.Fields(name) {
			fmt.Fprintln(&b, r)
		}
	}
	return b.String()
}

// sameLines checks that two texts differ in the known keys, in the patterns and names of fields,
// and in their byte order marks only.
func sameLines(before, after string) error {
	was, is := syntax.Decode([]byte(before), 0).Scan(), syntax.Decode([]byte(after), 0).Scan()
	for was.NextLine() {
		if !is.NextLine() {
			return fmt.Errorf("line %d is missing", was.Line)
		}
		_, comment, _ := strings.Cut(was.Content, "#")
		_, kept, _ := strings.Cut(is.Content, "#")
		switch field := was.Split(); {
		case field != is.Split(), was.Name != is.Name, was.Line != is.Line, comment != kept,
			endOf(before, was.Pos()) != endOf(after, is.Pos()),
			was.Value != is.Value && was.Name != syntax.UserAgent && was.Name != syntax.Allow && was.Name != syntax.Disallow,
			!was.Known && was.Content != is.Content && !strings.EqualFold(was.Name, "Content-Usage") && !strings.EqualFold(was.Name, "License"):
			return fmt.Errorf("line %d: got %q, before %q", was.Line, is.Content, was.Content)
		}
	}
	if is.NextLine() {
		return fmt.Errorf("line %d is new", is.Line)
	}
	return nil
}

// endOf returns what ends the line before a place.
func endOf(text string, at int) string {
	text = text[:min(at, len(text))]
	return text[len(strings.TrimRight(text, "\r\n")):]
}

// advice checks that every line that a finding advises to write is in the corrected file.
func advice(data, fixed []byte) error {
	lines := robotstxt.Lines(string(fixed))
	for _, f := range Check(data, 0) {
		_, right, ok := strings.Cut(f.Text, `; write "`)
		if !ok {
			continue
		}
		right, _, _ = strings.Cut(right, `" (and `)
		right = strings.TrimSuffix(right, `"`)
		line := strings.TrimPrefix(lines[f.Line-1], "\uFEFF")
		key, value, _ := strings.Cut(line, ":")
		if line = strings.Trim(key, syntax.Space) + ": " + strings.Trim(value, syntax.Space); !strings.HasPrefix(line, right) {
			return fmt.Errorf("line %d: the advice is %q, but the correction %q", f.Line, right, line)
		}
	}
	return nil
}

// allowed decides as the gate does: a path that some server reads as a denied one is denied, too.
func allowed(f *robotstxt.File, path, token string) bool {
	v := f.Decide(path, token)
	return v.Allowed && (v.Rule.SpellsLike(path) || !slices.ContainsFunc(robotstxt.Readings(path), func(reading string) bool {
		return !f.Decide(reading, token).Allowed
	}))
}

// derivedPaths returns some of the paths that the rules of a file match, or nearly match.
func derivedPaths(rng *rand.Rand, f *robotstxt.File, n int) (paths []string) {
	var rules []robotstxt.Rule
	for token := range f.Names() {
		rules = slices.AppendSeq(rules, f.Group(token).Rules())
	}
	rules = slices.AppendSeq(rules, f.Group().Rules())
	if len(rules) == 0 {
		return nil
	}
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	for range n {
		path := ""
		for i, part := range strings.Split(strings.TrimSuffix(rules[rng.IntN(len(rules))].Pattern, pick("$", "")), "*") {
			if i > 0 {
				path += pick("", "", "x", "/x/", "*", "%2A", "ä")
			}
			path += part
		}
		path = strings.ReplaceAll(path, "$", pick("$", "", "%24"))
		at := rng.IntN(len(path) + 1)
		switch rng.IntN(6) {
		case 0:
			path = path[:at]
		case 1:
			path = path[:at] + pick("x", "/", "%2F", "%2f", ";a", "//", "?", "%") + path[at:]
		case 2:
			if at < len(path) {
				path = fmt.Sprintf("%s%%%02x%s", path[:at], path[at], path[at+1:])
			}
		}
		paths = append(paths, "/"+strings.TrimPrefix(path, "/")+pick("", "", "x", "/x", "?a=b", "$", "*"))
	}
	return paths
}
