package lint

import (
	"strings"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// sitemap looks at the value of a Sitemap field.
func (l *linter) sitemap(s *syntax.Scanner) {
	scheme, rest, _ := strings.Cut(s.Value, "://")
	switch {
	case s.Value == "":
		l.report(Crawlers, s.Line, "the line names no sitemap; it needs a URL such as https://example.com/sitemap.xml")
	case strings.ContainsAny(s.Value, syntax.Space):
		l.report(Crawlers, s.Line, "a Sitemap line has one URL and nothing else; each URL needs a line of its own")
	case !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") || rest == "":
		l.report(Crawlers, s.Line, "%s is no absolute URL, so crawlers ignore it; it needs scheme and host, as in https://example.com/sitemap.xml", quote(s.Value))
	}
}

// crawlDelay looks at the value of a Crawl-delay field. If it is not plain, a
// finding about it has been reported.
func (l *linter) crawlDelay(s *syntax.Scanner, plain bool) {
	if !l.began {
		l.report(Decisions, s.Line, "the Crawl-delay stands before the first User-agent line, so it binds no crawler; below one, it would slow that crawler down")
	}
	_, ok := syntax.ParseDelay(s.Value)
	switch {
	case !ok && !plain:
	case !ok && s.Value == "":
		l.report(Decisions, s.Line, "the Crawl-delay has no value and is ignored; with a number of seconds it would slow crawlers down")
	case !ok && s.Value[0] == '-':
		l.report(Decisions, s.Line, "a Crawl-delay can't be negative, so it is ignored; a positive number would slow crawlers down")
	case !ok:
		l.report(Decisions, s.Line, "%s is no number, so the Crawl-delay is ignored; with digits and one decimal point only, it would slow crawlers down", quote(s.Value))
	}
	l.states = l.states || ok
}
