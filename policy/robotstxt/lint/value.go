package lint

import (
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
	d := delay{seconds, s.Line}
	if l.open {
		l.delays = append(l.delays, d)
		return
	}
	l.begin().addDelay(l, d)
}

// addDelay reports all delays of a section but the largest, which counts.
func (s *section) addDelay(l *linter, d delay) {
	if s.delay.line == 0 {
		s.delay = d
		return
	}
	if d.seconds > s.delay.seconds {
		s.delay, d = d, s.delay
	}
	l.report(d.line, "the Crawl-delay of %v on line %d counts, as the largest of the group; remove this one", s.delay.seconds, s.delay.line)
}

// A delay is a valid Crawl-delay.
type delay struct {
	seconds float64
	line    int
}
