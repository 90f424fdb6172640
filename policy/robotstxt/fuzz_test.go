package robotstxt

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/robotstxt/internal/match"
	"robotsgate/policy/robotstxt/internal/syntax"
)

// The reference below is a slow and obvious implementation: a list of rules, compared from
// the first to the last, with a matcher that tries every way. It shares no code with the
// index and the search.

// slowDecide returns the line of the rule that governs path, which is in normal
// form, and whether it allows.
func slowDecide(f *File, token, path string) (line int, allowed bool) {
	var bestOctets int
	allowed = true
	for _, r := range slowRules(f, token) {
		pattern := match.Normal(r.Pattern)
		if !slowMatches(pattern, path) && !(match.ComparesQuery(pattern) && slowMatches(match.EncodeQuery(pattern), match.EncodeQuery(path))) {
			continue
		}
		octets := slowOctets(r.Pattern)
		longer := octets > bestOctets
		tie := octets == bestOctets
		if line == 0 || longer || tie && r.Allow && !allowed {
			line, allowed, bestOctets = r.Line, r.Allow, octets
		}
	}
	return line, allowed
}

// slowOctets counts the octets of a pattern in normal form. A $ counts as one wherever it
// stands, like any character that need not be encoded.
func slowOctets(pattern string) int {
	return len(match.Normal(strings.ReplaceAll(pattern, "$", "a")))
}

// slowRules returns the rules that a crawler must obey, in the order of the file.
func slowRules(f *File, token string) []Rule {
	token = strings.ToLower(token)
	var own, everyones []Rule
	var forOwn, forEveryone, open, hasOwn bool
	for s := syntax.Decode([]byte(f.body), 0).Scan(); s.Next(); {
		switch s.Name {
		case syntax.UserAgent:
			if !open {
				open, forOwn, forEveryone = true, false, false
			}
			long, short := syntax.TokenNames(s.Value)
			if token != "" && (strings.ToLower(long) == token || strings.ToLower(short) == token) {
				forOwn, hasOwn = true, true
			}
			forEveryone = forEveryone || syntax.IsEveryone(s.Value)
		case syntax.Allow, syntax.Disallow:
			open = false
			if s.Value == "" || s.Value[0] != '/' && s.Value[0] != '*' {
				continue
			}
			r := Rule{Allow: s.Name == syntax.Allow, Line: s.Line, Pattern: s.Value}
			if forOwn {
				own = append(own, r)
			}
			if forEveryone {
				everyones = append(everyones, r)
			}
		}
	}
	if hasOwn {
		return own
	}
	return everyones
}

// slowDelay returns the largest Crawl-delay of the crawlers with a name, which a Crawl-delay
// has if it is on one of the User-agent lines directly above; 0 if there is none.
func slowDelay(f *File, name string) (delay float64) {
	var above []string
	ended := false
	for s := syntax.Decode([]byte(f.body), 0).Scan(); s.Next(); {
		if s.Name == syntax.UserAgent {
			if ended {
				above, ended = nil, false
			}
			long, short := syntax.TokenNames(s.Value)
			if syntax.IsEveryone(s.Value) {
				long = everyone
			}
			above = append(above, strings.ToLower(long), strings.ToLower(short))
			continue
		}
		ended = true
		if seconds, ok := syntax.ParseDelay(s.Value); s.Name == syntax.CrawlDelay && ok && slices.Contains(above, name) {
			delay = max(delay, seconds)
		}
	}
	return delay
}

// slowMatches keeps the set of places in path that the pattern may have reached.
func slowMatches(pattern, path string) bool {
	places := make([]bool, len(path)+1)
	places[0] = true
	for i, c := range []byte(pattern) {
		next := make([]bool, len(path)+1)
		for j := range places {
			switch {
			case !places[j]:
			case c == '*':
				for k := j; k <= len(path); k++ {
					next[k] = true
				}
			case c == '$' && i == len(pattern)-1:
				next[j] = j == len(path)
			case j < len(path) && path[j] == c:
				next[j+1] = true
			}
		}
		places = next
	}
	return slices.Contains(places, true)
}

// TestReference does the same as FuzzDecide with more realistic files: some with many
// groups, some with many rules that begin alike.
func TestReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(2026, 9309))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	random := func(n int) (s string) {
		for range rng.IntN(n) {
			s += pick("a", "a", "b", "/", "/", "*", "*", "$", "?", ":", "%2F", "%3a", "%61", "ä")
		}
		return s
	}
	line := func(names bool) string {
		switch n := rng.IntN(8); {
		case n == 0 && names:
			return pick("", "", "", "Crawl-delay: "+pick("0", "1", "2", "x"), "Sitemap: /s") + "\nUser-agent: " + pick("*", "a", "b", "c2", "c", "c2d")
		case n < 4:
			return "Allow: /" + random(8)
		default:
			return "Disallow: " + pick("/", "*", "/a", "/a/b", "/*", "/a*a") + random(8)
		}
	}
	sizes := []int{400, 10, 60, 60, 60, 60, 60, 60}
	for n := range gatetest.Rounds(3000) {
		var robots strings.Builder
		robots.WriteString("User-agent: *\n")
		for range 1 + rng.IntN(sizes[n%len(sizes)]) {
			robots.WriteString(line(n%len(sizes) > 0) + "\n")
		}
		file := Parse([]byte(robots.String()), 0)
		for range 20 {
			path := Normalize("/" + random(14))
			token := pick("a", "B", "c2", "c", "d")
			wantLine, wantAllowed := slowDecide(file, token, path)
			if v := file.Decide(path, token); v.Allowed != wantAllowed || v.Rule.Line != wantLine {
				t.Fatalf("%q for %q: got %v by line %d, want %v by line %d in\n%s",
					path, token, v.Allowed, v.Rule.Line, wantAllowed, wantLine, &robots)
			}
			if line := indexedLine(file, path, token); line != wantLine {
				t.Fatalf("%q for %q: with an index got line %d, want %d in\n%s", path, token, line, wantLine, &robots)
			}
			group := file.Group(token)
			if delay, _, _ := group.CrawlDelay(); delay != slowDelay(file, group.Name()) {
				t.Fatalf("for %q: got a delay of %v, want %v in\n%s", token, delay, slowDelay(file, group.Name()), &robots)
			}
		}
	}
}

// FuzzDecide checks that index, search and matcher agree with the reference.
func FuzzDecide(f *testing.F) {
	f.Add("User-agent: a\nUser-agent: *\nDisallow: /a*b$\nAllow: /a\nUser-agent: a\nDisallow: /ab/c*", "/ab/c?d", "a")
	f.Add("User-agent: *\nDisallow: /?a=%2F\nDisallow: /*?a=/\nDisallow: *%3A", "/?a=/%3a", "")
	f.Add("User-agent: *\nAllow: /a*b*c\nDisallow: /a*b\nAllow: /a\nAllow: /abc$\nDisallow: *", "/abc", "b2")
	f.Fuzz(func(t *testing.T, robots, path, token string) {
		if len(robots) > 10000 || len(path) > 1000 {
			t.Skip("too slow for the reference")
		}
		file := Parse([]byte(robots), 0)
		path = Normalize(path)
		if path == "" || path == "/robots.txt" {
			t.Skip()
		}
		wantLine, wantAllowed := slowDecide(file, token, path)
		v := file.Decide(path, token)
		if v.Allowed != wantAllowed || v.Rule.Line != wantLine {
			t.Errorf("%q for %q: got %v by line %d, want %v by line %d",
				path, token, v.Allowed, v.Rule.Line, wantAllowed, wantLine)
		}
		if line := indexedLine(file, path, token); line != wantLine {
			t.Errorf("%q for %q: with an index got line %d, want %d", path, token, line, wantLine)
		}
	})
}

// indexedLine returns the line of the rule that governs path. It searches with a
// table of the path, which Decide uses for costly files only.
func indexedLine(f *File, path, token string) int {
	best := candidate{file: f, Finder: match.Finder{Steps: match.MaxSteps}}
	f.Group(token).search(&best, path, true)
	if best.rule == nil {
		return 0
	}
	return int(best.rule.line)
}

// FuzzLineEnds checks that all line ends are equal, except that NUL does not count as a
// line.
func FuzzLineEnds(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a\n\nDisallow: /b", "/b")
	f.Add("user-agent *\ndisallow /\x00allow /a", "/a")
	f.Fuzz(func(t *testing.T, robots, path string) {
		robots = strings.NewReplacer("\r", "", "\x00", "").Replace(robots)
		want := Parse([]byte(robots), 0).Decide(path, "a")
		for _, end := range []string{"\r", "\r\n", "\x00", "\n\x00", "\x00\n"} {
			got := Parse([]byte(strings.ReplaceAll(robots, "\n", end)), 0).Decide(path, "a")
			if end == "\x00" { // all on one line: of rules that weigh the same, none is the first
				got.Rule = want.Rule
			}
			if got.Allowed != want.Allowed || got.Reason != want.Reason || got.Rule != want.Rule {
				t.Errorf("%q with %q for line ends: got %v %v, want %v %v", robots, end, got.Reason, got.Rule, want.Reason, want.Rule)
			}
		}
	})
}

// FuzzNormalize checks that a path and its normal form get the same verdict, and that the
// normal form is its own normal form.
func FuzzNormalize(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /%7e*%2a", "/~a%2A")
	f.Add("User-agent: *\nDisallow: /%%37E", "/%%37E")
	f.Add("User-agent: *\nDisallow: /ä?/", "/ä?%2f")
	f.Fuzz(func(t *testing.T, robots, path string) {
		normal := Normalize(path)
		if again := Normalize(normal); again != normal {
			t.Errorf("%q: normal form %q has the normal form %q", path, normal, again)
		}
		for i := range len(normal) {
			if match.Encodes(normal[i]) {
				t.Errorf("%q: %q in normal form %q", path, normal[i], normal)
			}
		}
		file := Parse([]byte(robots), 0)
		if got, want := file.Decide(normal, "a"), file.Decide(path, "a"); got != want {
			t.Errorf("%q: got %v, want %v", path, got, want)
		}
	})
}

// FuzzParse checks that nothing panics, and that the results fit the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte("User-agent: *\nDisallow: /private/\nSitemap: a\nx: y\n"), 20, "/private/x", "a")
	f.Add([]byte("\xff\xfeU\x00s\x00e\x00r\x00"), 5, "/", "*")
	f.Fuzz(func(t *testing.T, data []byte, limit int, path, token string) {
		file := Parse(data, limit)
		body := file.Body()
		if !strings.HasPrefix(string(data), body) {
			t.Fatalf("the body %q is no prefix of the data", body)
		}
		if limit > 0 && len(body) > limit {
			t.Errorf("%d bytes of body, limit %d", len(body), limit)
		}
		if file.Truncated() != (limit > 0 && len(data) > limit) || !file.Truncated() && len(body) != len(data) {
			t.Errorf("truncated %v at %d of %d bytes, limit %d", file.Truncated(), len(body), len(data), limit)
		}
		if file.Size() < len(body) {
			t.Errorf("size %d, body %d", file.Size(), len(body))
		}
		// A rule can only come from a line that exists; CR ends a line too.
		lines := 1 + strings.Count(body, "\n") + strings.Count(body, "\r")
		v := file.Decide(path, token)
		if v.Reason == ByRule && (v.Rule.Line < 1 || v.Rule.Line > lines || v.Rule.Pattern == "") {
			t.Errorf("rule cites line %d of %d: %q", v.Rule.Line, lines, v.Rule)
		}
		if !v.Allowed && v.Reason != ByRule {
			t.Errorf("denied by %s", v.Reason)
		}
		for i := range file.fields {
			r := file.fields[i].public()
			if r.Line < 1 || r.Line > lines || r.Name == "" || !strings.Contains(file.text, r.Value) {
				t.Errorf("record %+v in %d lines", r, lines)
			}
			if !slices.Contains(slices.Collect(file.Fields(r.Name)), r) {
				t.Errorf("record %+v is not found by its name", r)
			}
		}
		for r := range file.Group(token).Fields("Crawl-delay") {
			if !r.InGroup || !slices.Contains(slices.Collect(file.Fields("crawl-DELAY")), r) {
				t.Errorf("the file does not have record %+v of a group", r)
			}
		}
		file.Group(token).CrawlDelay()
	})
}

// FuzzPathOf checks that any text has a path without dot segments.
func FuzzPathOf(f *testing.F) {
	f.Add("http://user@example.com:80/a/./b/%2e%2E/c?d/../e#f")
	f.Add("//;?/")
	f.Fuzz(func(t *testing.T, url string) {
		path, _, _ := strings.Cut(PathOf(url), "?")
		if !strings.HasPrefix(path, "/") {
			t.Fatalf("%q: path %q", url, path)
		}
		for segment := range strings.SplitSeq(path, "/") {
			if s := Normalize(segment); s == "." || s == ".." {
				t.Errorf("%q: dot segment in %q", url, path)
			}
		}
		if again := RemoveDotSegments(path); again != path {
			t.Errorf("%q: %q, then %q", url, path, again)
		}
	})
}
