package lint

import (
	"regexp"
	"slices"
	"strings"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// browsers are products in the User-Agent of browsers, and of crawlers that imitate them.
var browsers = []string{"mozilla", "applewebkit", "khtml", "gecko", "chrome", "safari", "opera", "msie"}

// userAgent looks at a User-agent line. If it is not plain, a finding
// about its value has been reported.
func (l *linter) userAgent(s *syntax.Scanner, plain bool) {
	if !l.open {
		l.began, l.open, l.states = true, true, false
		l.run, l.runLine, l.joined = l.run[:0], s.Line, l.joined[:0]
	} else if l.separated {
		l.joined = append(l.joined, [2]int{l.lastLine, s.Line})
	}
	l.lastLine, l.separated = s.Line, false

	name := syntax.TokenName(s.Value)
	if syntax.IsEveryone(s.Value) {
		name = "*"
	}
	if plain {
		l.agentValue(s, name)
	}
	if name != "" {
		l.named(name, s.Line)
	}
}

// agentValue looks at what a User-agent line says beside the name that is read.
func (l *linter) agentValue(s *syntax.Scanner, name string) {
	value := quote(s.Value)
	rest := s.Value[len(name):]
	digit := strings.IndexAny(name, "0123456789")
	switch {
	case s.Value == "":
		l.report(Decisions, s.Line, "the line names no crawler; with a * it would name all of them, and the rules below would bind them")
	case name == "" && s.Value[0] == '*':
		l.report(Decisions, s.Line, "%s names no crawler, since * has to stand alone; a whole product token would name one", value)
	case name == "":
		l.report(Decisions, s.Line, "%s can't be a product token, so the line names no crawler; one of letters, - and _ would", value)
	case rest == "" && digit > 0:
		l.report(Taste, s.Line, "RFC 9309 has no digits in product tokens, so some crawlers read %s as %s; make sure that the crawler documents this name", value, quote(name[:digit]))
	case rest == "" && digit == 0:
		l.report(Taste, s.Line, "RFC 9309 has no digits in product tokens, so some crawlers read no name in %s; make sure that the crawler documents this name", value)
	case rest == "":
	case strings.Trim(rest, "*") == "":
		l.report(Decisions, s.Line, "the * behind %s does nothing, since a product token is compared whole; each crawler that is meant needs a line of its own", quote(name))
	case slices.Contains(browsers, strings.ToLower(name)):
		l.report(Decisions, s.Line, "%s is read as %s, the name of browsers, which no crawler obeys; the crawler's product token alone would name it", value, quote(name))
	case version.MatchString(rest):
		c := l.correct(s, edit{s.At + len(name), s.At + len(s.Value), ""}, "%s is read as %s, since a product token has no version, but not by every crawler", value, quote(name))
		c.value = name
	case strings.ContainsAny(rest[:1], syntax.Space+",;|"):
		l.report(Decisions, s.Line, "the line names %s only, and the rest is ignored; a User-agent line for each crawler would name the others", quote(name))
	default:
		l.report(Decisions, s.Line, "%s is read as %s, since a product token has letters, - and _ only; make sure that this is the crawler that is meant", value, quote(name))
	}
}

// version matches what follows the product token in the User-Agent that a crawler sends.
var version = regexp.MustCompile(`^/[vV]?[0-9][0-9A-Za-z._-]*$`)

// named notes a name that the open group is for.
func (l *linter) named(name string, line int) {
	key := strings.ToLower(name)
	t := l.tokens[key]
	switch {
	case t == nil:
		t = &token{name: name, line: line}
		l.tokens[key] = t
		l.ordered = append(l.ordered, t)
	case slices.Contains(l.run, t):
		l.report(Taste, line, "%s is named for this group already", quote(name))
		return
	default:
		l.report(Crawlers, line, "%s has a group on line %d already, and crawlers read the two as one, but some old ones read the first alone", quote(name), t.runLine)
	}
	t.runLine = l.runLine
	l.run = append(l.run, t)
}

// begin ends the run of User-agent lines, and returns the section of the group.
func (l *linter) begin() *section {
	if !l.open {
		return l.here
	}
	l.open = false
	var names []string
	for _, t := range l.run {
		names = append(names, t.name)
	}
	slices.Sort(names)
	key := strings.Join(names, " ")
	if l.here = l.byNames[key]; l.here == nil {
		l.here = &section{}
		l.byNames[key] = l.here
		if key != "" { // otherwise the lines name no crawler, which has been reported
			l.sections = append(l.sections, l.here)
		}
	}
	for _, t := range l.run {
		if !slices.Contains(t.sections, l.here) {
			t.sections = append(t.sections, l.here)
		}
	}
	return l.here
}

// last looks at the group that the end of the file ends.
func (l *linter) last() {
	if !l.open {
		return
	}
	section := l.begin()
	// A group with a Crawl-delay or a usage preference does something. That it names no crawler, or adds nothing
	// to a group above, has been reported.
	above := func(t *token) bool { return t.line < l.runLine }
	if l.states || len(l.run) == 0 || slices.ContainsFunc(l.run, above) {
		return
	}
	section.open = true
	l.report(Decisions, l.runLine, "no rule follows, so this group may fetch everything; a line \"Disallow:\" below would say so, and change nothing")
}
