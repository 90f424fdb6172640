package lint

import (
	"slices"
	"strings"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// sitemap looks at the value of a Sitemap record.
func (l *linter) sitemap(s *syntax.Scanner) {
	scheme, rest, _ := strings.Cut(s.Value, "://")
	switch {
	case s.Value == "":
		l.report(s.Line, "the line names no sitemap; write its URL, such as https://example.com/sitemap.xml")
	case strings.ContainsAny(s.Value, syntax.Space):
		l.report(s.Line, "a Sitemap line has one URL and nothing else; write a line for each")
	case !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") || rest == "":
		l.report(s.Line, "%s is no absolute URL, so crawlers ignore it; write one such as https://example.com/sitemap.xml", quote(s.Value))
	}
}

// crawlDelay looks at the value of a Crawl-delay record. If it is not plain, a
// finding about it has been reported.
func (l *linter) crawlDelay(s *syntax.Scanner, plain bool) {
	if !l.began {
		l.report(s.Line, "the Crawl-delay stands before the first User-agent line, so it binds no crawler; write \"User-agent: *\" above it")
	}
	seconds, ok := syntax.ParseDelay(s.Value)
	switch {
	case !ok && !plain:
	case !ok && s.Value == "":
		l.report(s.Line, "the Crawl-delay has no value and is ignored; write the seconds to wait between requests")
	case !ok && s.Value[0] == '-':
		l.report(s.Line, "a Crawl-delay can't be negative, so it is ignored; write the seconds to wait between requests")
	case !ok:
		l.report(s.Line, "%s is no number, so the Crawl-delay is ignored; write the seconds as in \"Crawl-delay: 1.5\"", quote(s.Value))
	}
	if !ok || !l.began {
		return
	}
	l.states = true
	l.addDelay(delay{seconds, s.Line})
}

// addDelay reports all delays of the crawlers named directly above but the largest, which counts.
func (l *linter) addDelay(d delay) {
	if l.largest == nil {
		slices.Sort(l.above)
		key := strings.Join(slices.Compact(l.above), " ")
		if l.largest = l.delays[key]; l.largest == nil {
			l.largest = &d
			l.delays[key] = &d
			return
		}
	}
	largest := l.largest
	if d.seconds > largest.seconds {
		*largest, d = d, *largest
	}
	l.report(d.line, "the Crawl-delay of %v on line %d counts, as the largest of these crawlers; remove this one", largest.seconds, largest.line)
}

// A delay is a valid Crawl-delay.
type delay struct {
	seconds float64
	line    int
}
