package robotstxt

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// The reference below is a slow and obvious implementation: a list of rules, compared from
// the first to the last, with a matcher that keeps every place. Of the product it uses only
// the reading of lines into fields.

var (
	unreservedText = regexp.MustCompile(`[A-Za-z0-9._~-]`)
	forEveryone    = regexp.MustCompile(`^\*([ \t\v\f]|$)`)
	wholeName      = regexp.MustCompile(`^[a-z0-9_-]*`)
	digitless      = regexp.MustCompile(`^[a-z_-]*`)
)

// A symbol is one character of a path or of a pattern.
type symbol struct {
	c            byte
	escape       bool   // it is written as an escape
	apart        bool   // of a path: it differs from what is written otherwise
	wild, theEnd bool   // of a pattern
	counted      string // of a pattern: the octets that count for its rank
}

// symbolsOf takes a text apart.
func symbolsOf(text string) (symbols []symbol) {
	const hex = "0123456789abcdef"
	for i := 0; i < len(text); i++ {
		s := symbol{c: text[i], counted: "x"}
		if s.c == '%' {
			s.escape, s.counted = true, "%XX" // also of a percent sign alone, which is %25
			if rest := strings.ToLower(text[i+1:]); len(rest) >= 2 && strings.Contains(hex, rest[:1]) && strings.Contains(hex, rest[1:2]) {
				s.c = byte(strings.Index(hex, rest[:1])*16 + strings.Index(hex, rest[1:2]))
				i += 2
				if unreservedText.Match([]byte{s.c}) {
					s.counted = "x"
				}
			}
		} else if s.c <= ' ' || s.c > '~' || strings.ContainsRune("\"<>\\^{|}`", rune(s.c)) {
			s.counted = "%XX"
		}
		symbols = append(symbols, s)
	}
	return symbols
}

func slowPath(path string) []symbol {
	symbols, apart := symbolsOf(path), "/?#%"
	for i := range symbols {
		s := &symbols[i]
		s.apart = strings.IndexByte(apart, s.c) >= 0
		if s.c == '?' && !s.escape {
			apart = "&=+#%"
		}
	}
	return symbols
}

func slowPattern(pattern string) []symbol {
	symbols := symbolsOf(pattern)
	for i := range symbols {
		s := &symbols[i]
		s.wild = s.c == '*' && !s.escape
		s.theEnd = s.c == '$' && !s.escape && i == len(symbols)-1
	}
	return symbols
}

// slowDecide returns the line of the rule that governs path, and whether it allows.
func slowDecide(f *File, token, path string) (line int, allowed bool) {
	var bestOctets int
	allowed = true
	symbols := slowPath(path)
	for _, r := range slowRules(f, token) {
		if !slowMatches(slowPattern(r.Pattern), symbols) {
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

// slowOctets counts the octets of a pattern.
func slowOctets(pattern string) (n int) {
	for _, s := range symbolsOf(pattern) {
		n += len(s.counted)
	}
	return n
}

// slowNames are the names of a User-agent line: whole, and cut short at a digit.
func slowNames(value string) (whole, short string) {
	if forEveryone.MatchString(value) {
		return everyone, ""
	}
	lower := strings.ToLower(value)
	return wholeName.FindString(lower), digitless.FindString(lower)
}

// slowBinds returns whether a User-agent line is for a crawler: if a line of the file has the very name, only such lines are.
func slowBinds(f *File, name string) func(value string) bool {
	exact := false
	for s := decode([]byte(f.body), 0).scan(); s.Next(); {
		if s.Name == userAgent {
			whole, _ := slowNames(s.Value)
			exact = exact || whole == name
		}
	}
	return func(value string) bool {
		whole, short := slowNames(value)
		return name != "" && (whole == name || !exact && short == name)
	}
}

// slowRules returns the rules that a crawler must obey, in the order of the file.
func slowRules(f *File, token string) []Rule {
	var own, everyones []Rule
	var forOwn, forEveryone, open, hasOwn bool
	binds := slowBinds(f, strings.ToLower(token))
	for s := decode([]byte(f.body), 0).scan(); s.Next(); {
		switch s.Name {
		case userAgent:
			if !open {
				open, forOwn, forEveryone = true, false, false
			}
			if token != everyone && binds(s.Value) {
				forOwn, hasOwn = true, true
			}
			whole, _ := slowNames(s.Value)
			forEveryone = forEveryone || whole == everyone
		case allow, disallow:
			open = false
			if s.Value == "" || s.Value[0] != '/' && s.Value[0] != '*' {
				continue
			}
			r := Rule{Allow: s.Name == allow, Line: s.Line, Pattern: s.Value}
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
	bound, ended := false, false
	binds := slowBinds(f, name)
	for s := decode([]byte(f.body), 0).scan(); s.Next(); {
		if s.Name == userAgent {
			bound = bound && !ended || binds(s.Value)
			ended = false
			continue
		}
		ended = true
		if seconds, ok := parseDelay(s.Value); s.Name == crawlDelay && ok && bound {
			delay = max(delay, seconds)
		}
	}
	return delay
}

// slowMatches keeps the set of places in path that the pattern may have reached.
func slowMatches(pattern, path []symbol) bool {
	places := make([]bool, len(path)+1)
	places[0] = true
	for _, p := range pattern {
		next := make([]bool, len(path)+1)
		for j := range places {
			switch {
			case !places[j]:
			case p.wild:
				for k := j; k <= len(path); k++ {
					next[k] = true
				}
			case p.theEnd:
				next[j] = j == len(path)
			case j < len(path) && path[j].c == p.c && (!path[j].apart || path[j].escape == p.escape):
				next[j+1] = true
			}
		}
		if places = next; !slices.Contains(places, true) {
			return false
		}
	}
	return true
}

// TestReference does the same as FuzzDecide with more realistic files: some with many
// groups, some with many rules that begin alike.
func TestReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(2026, 9309))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	nasty := []string{"a", "a", "b", "/", "/", "*", "*", "$", "?", "?", "A", "é", "%C3%a9", "%61", "%41", "%25", "%2525", "%", "%2", "%2A", "%24", "%20", " ", "%01", "\x01", "%7c", "|"}
	for _, c := range "/?#%&=+*$[]:@!;" {
		nasty = append(nasty, strings.Trim(string(c), "#"), fmt.Sprintf("%%%02X", c), fmt.Sprintf("%%%02x", c))
	}
	random := func(n int) (s string) {
		for range rng.IntN(n) {
			s += pick(nasty...)
		}
		return s
	}
	line := func(names bool) string {
		switch n := rng.IntN(8); {
		case n == 0 && names:
			return pick("", "", "", "Crawl-delay: "+pick("0", "1", "2", "x"), "Sitemap: /s") + "\nUser-agent: " + pick("*", "a", "b", "c2", "c", "c2d", "d1", "d2")
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
		for range 10 {
			path := "/" + random(14)
			token := pick("a", "B", "c2", "c", "d", "D1")
			wantLine, wantAllowed := slowDecide(file, token, path)
			if v := file.Decide(path, token); v.Allowed != wantAllowed || v.Rule.Line != wantLine {
				t.Fatalf("%q for %q: got %v by line %d, want %v by line %d in\n%s",
					path, token, v.Allowed, v.Rule.Line, wantAllowed, wantLine, &robots)
			}
			group := file.Group(token)
			if delay, _, _ := group.CrawlDelay(); delay != slowDelay(file, group.Name()) {
				t.Fatalf("for %q: got a delay of %v, want %v in\n%s", token, delay, slowDelay(file, group.Name()), &robots)
			}
		}
	}
}

// FuzzDecide checks that the decision and the matcher agree with the reference.
func FuzzDecide(f *testing.F) {
	f.Add("User-agent: a\nUser-agent: *\nDisallow: /a*b$\nAllow: /a\nUser-agent: a\nDisallow: /ab/c*", "/ab/c?d", "a")
	f.Add("User-agent: *\nDisallow: /?a=%2F\nDisallow: /*?a=/\nDisallow: *%3A", "/?a=/%3a", "")
	f.Add("User-agent: *\nAllow: /a*b*c\nDisallow: /a*b\nAllow: /a\nAllow: /abc$\nDisallow: *", "/abc", "b2")
	f.Fuzz(func(t *testing.T, robots, path, token string) {
		if len(robots) > 10000 || len(path) > 1000 {
			t.Skip("too slow for the reference")
		}
		file := Parse([]byte(robots), 0)
		if path == "" || IsRobots(path) {
			t.Skip()
		}
		wantLine, wantAllowed := slowDecide(file, token, path)
		v := file.Decide(path, token)
		if v.Allowed != wantAllowed || v.Rule.Line != wantLine {
			t.Errorf("%q for %q: got %v by line %d, want %v by line %d",
				path, token, v.Allowed, v.Rule.Line, wantAllowed, wantLine)
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
