package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
)

// A speller generates spellings of the disallowed paths: it inserts detours through other
// directories, and writes each slash, dot and character in one of several ways. Most choices are
// the plain one, so that the servers serve many of the spellings.
type speller struct{ *rand.Rand }

// spelledPages are the segments of the paths to spell.
var spelledPages = [][]string{
	{"private", "x"}, {"private", "x"}, {"private", "open", "x"}, {"private", ""}, {"a", "b", "c.html"},
	{"docs", "plan.secret"}, {"Case", "Exact"}, {"café", "x"}, {"with space", "x"}, {"plus+sign", "x"}, {"list", "closed"},
}

var (
	separators  = []string{"//", "///", "%2F", "%2f", "%5C", "%5c", `\`, "%252F", "%252f", "%255C", "/;/", "/;x/", ";/", ";x=y/", ";%2F/", "%3B/", "%253B/", "/%2F", "%2F/", "/./", "/%2e/", "/.;/"}
	detours     = []string{"public", "docs", "no-such", "list/open", "private", ".", "", "public/x", "private/x", "..", "...", "a"}
	singleDots  = []string{"%2e", "%2E", "%252e", "%252E", "%u002e", "%c0%ae"}
	segmentEnds = []string{";", ";x", ";a=b;c", ";%2F", ";/", "%3B", "%3Bx", "%253B", "%20", "%00", ".", "%2e", ";..", ";%2e%2e", "%0a", "%09", ";x%2F..", ";x%5C", "%23", "%3F"}
)

// spelling returns a request target that begins with a slash.
func (s speller) spelling() string {
	page := spelledPages[s.IntN(len(spelledPages))]
	plain := 0.5 + 0.5*s.Float64() // the probability of a character's plain form
	var b strings.Builder
	b.WriteString("/")
	if s.IntN(6) == 0 {
		b.WriteString(s.separator(plain))
	}
	for i, segment := range page {
		for s.IntN(4) == 0 {
			b.WriteString(s.detour(plain))
		}
		b.WriteString(s.name(segment, plain))
		b.WriteString(s.end(plain))
		if i < len(page)-1 {
			b.WriteString(s.separator(plain))
		}
	}
	if s.IntN(20) == 0 {
		b.WriteString(s.separator(plain))
	}
	return b.String()
}

// spelledQueries are the disallowed queries to spell.
var spelledQueries = []string{"session=1", "sort=a,b", "id=(1)"}

// query returns a request target for an allowed page with a disallowed query, which in half of them
// begins with an encoded question mark.
func (s speller) query() string {
	plain := 0.5 + 0.5*s.Float64()
	mark, own := "?", ""
	if s.IntN(2) == 0 {
		mark = s.encoded('?')
		own = []string{"", "?", "?a=b"}[s.IntN(3)]
	}
	return "/public/x" + mark + s.name(spelledQueries[s.IntN(len(spelledQueries))], plain) + s.end(plain) + own
}

// detour returns segments that lead into other directories and back.
func (s speller) detour(plain float64) string {
	in := detours[s.IntN(len(detours))]
	depth := strings.Count(in, "/") + 1
	switch in {
	case ".", "":
		depth = 0
	}
	var b strings.Builder
	for segment := range strings.SplitSeq(in, "/") {
		b.WriteString(s.name(segment, plain) + s.end(plain) + s.separator(plain))
	}
	for range depth {
		b.WriteString(s.dot(plain) + s.dot(plain) + s.end(plain) + s.separator(plain))
	}
	return b.String()
}

func (s speller) separator(plain float64) string {
	if s.Float64() < plain {
		return "/"
	}
	return separators[s.IntN(len(separators))]
}

func (s speller) end(plain float64) string {
	if s.IntN(3) > 0 || s.Float64() < plain {
		return ""
	}
	return segmentEnds[s.IntN(len(segmentEnds))]
}

func (s speller) dot(plain float64) string {
	if s.Float64() < plain {
		return "."
	}
	return singleDots[s.IntN(len(singleDots))]
}

// name returns a segment. In a third of the segments no letter is encoded.
func (s speller) name(text string, plain float64) string {
	letters := s.IntN(3) > 0
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		must := c <= ' ' || c >= 0x7f
		switch {
		case c == '.':
			b.WriteString(s.dot(plain))
		case !must && (!letters || s.Float64() < 0.5+plain/2):
			b.WriteByte(c)
		default:
			b.WriteString(s.encoded(c))
		}
	}
	return b.String()
}

func (s speller) encoded(c byte) string {
	switch s.IntN(12) {
	case 0:
		return fmt.Sprintf("%%25%02X", c)
	case 1:
		return fmt.Sprintf("%%25%02x", c)
	case 2:
		return fmt.Sprintf("%%u00%02x", c)
	case 3:
		return fmt.Sprintf("%%%%3%d%02X", c>>4&7, c&15) // %%37 0: decoded twice
	case 4, 5, 6:
		return fmt.Sprintf("%%%02x", c)
	}
	return fmt.Sprintf("%%%02X", c)
}

// inserted are the texts that mutation inserts. None is a query, since a rule that ends with $
// does not match a path with a query.
var inserted = strings.Fields(`/ // %2F %5C \ ; ;x ;%2F %3B ..; ..%3B . .. %2e %2E%2e = , : @ %40 + %2B ~ %3F %23 %25 2F %252e %252F %253B %2520
	%20 %0a %00 %09 %u002f %25u002f %c0%af %E9 %25E9 %C3%A9 private public x open list name localhost {host}`)

// mutation returns the plain path of a page with random texts inserted, mostly at the ends of
// segments, and some characters removed.
func (s speller) mutation() string {
	path := "/" + strings.Join(spelledPages[s.IntN(len(spelledPages))], "/")
	path = (&url.URL{Path: path}).EscapedPath()
	for range 1 + s.IntN(4) {
		i := s.IntN(len(path) + 1)
		if s.IntN(3) > 0 {
			i = s.besideSlash(path)
		}
		var text strings.Builder
		for range 1 + s.IntN(3) {
			text.WriteString(inserted[s.IntN(len(inserted))])
		}
		rest := path[i:]
		if rest != "" && s.IntN(6) == 0 {
			rest = rest[1:]
		}
		path = path[:i] + text.String() + rest
	}
	return "/" + strings.TrimPrefix(path, "/")
}

// besideSlash returns an index before or after a slash of path, or its end.
func (s speller) besideSlash(path string) int {
	places := []int{len(path)}
	for i := range len(path) {
		if path[i] == '/' {
			places = append(places, i, i+1)
		}
	}
	return places[s.IntN(len(places))]
}
