package robotstxt

import (
	"slices"
	"strings"
)

// browsers are the products that a browser's User-Agent names, and many a crawler's
// after its example.
var browsers = []string{"mozilla", "applewebkit", "khtml", "gecko", "chrome", "safari", "opera", "msie"}

// userAgent looks at a User-agent line. If it is not plain, what is wrong with its
// value has been said.
func (l *linter) userAgent(s *scanner, plain bool) {
	opens := !l.groups.open
	if opens {
		l.runs++ // not its line: NUL lets one line have several
		l.run, l.runLine, l.delays = l.run[:0], s.line, l.delays[:0]
	} else if l.apart {
		l.report(l.lastLine, "no rule stands between this line and the User-agent on line %d, so both begin the same group; write \"Disallow:\" in between if this crawler may fetch all", s.line)
	}
	l.groups.userAgent(s.value)
	l.lastLine, l.apart = s.line, false

	name, _ := namesIn(s.value)
	if isEveryone(s.value) {
		name = "*"
	}
	if plain {
		l.agentValue(s, name)
	}
	if name != "" {
		l.named(name, s.line)
	}
}

// agentValue looks at what a User-agent line says beside the name that is read.
func (l *linter) agentValue(s *scanner, name string) {
	rest := s.value[len(name):]
	switch {
	case s.value == "":
		l.report(s.line, "the line names no crawler, so the rules below bind nobody; write \"User-agent: *\" if all are meant")
		return
	case name == "" && s.value[0] == '*':
		l.report(s.line, "%s names no crawler: * has to stand alone; write a whole product token, or * for all crawlers", quote(s.value))
		return
	case name == "":
		l.report(s.line, "%s can't be a product token, so the line names no crawler; write letters, - and _ only", quote(s.value))
		return
	case rest == "":
	case strings.Trim(rest, "*") == "":
		l.report(s.line, "the * behind %s does nothing, since a product token is compared whole; write %s", quote(name), quote("User-agent: "+name))
		return
	case slices.Contains(browsers, strings.ToLower(name)):
		l.report(s.line, "%s is read as %s, the name of browsers, which no crawler obeys; write the crawler's product token alone", quote(s.value), quote(name))
		return
	case isSpace(rest[0]) || rest[0] == ',' || rest[0] == ';' || rest[0] == '|':
		l.report(s.line, "the line names %s only, and the rest is ignored; write a User-agent line for each crawler", quote(name))
		return
	default:
		l.report(s.line, "%s is read as %s, since a product token has letters, - and _ only; write %s", quote(s.value), quote(name), quote("User-agent: "+name))
		return
	}
	if i := strings.IndexAny(name, "0123456789"); i > 0 {
		l.report(s.line, "RFC 9309 has no digits in product tokens, so some crawlers read %s as %s; make sure that the crawler documents this name", quote(name), quote(name[:i]))
	} else if i == 0 {
		l.report(s.line, "RFC 9309 has no digits in product tokens, so some crawlers read no name in %s; make sure that the crawler documents this name", quote(name))
	}
}

// named notes a name that the open group is for.
func (l *linter) named(name string, line int) {
	key := strings.ToLower(name)
	t := l.tokens[key]
	switch {
	case t == nil:
		t = &token{name: name, line: line}
		l.tokens[key] = t
		l.ordered = append(l.ordered, t)
	case t.last == l.runs:
		l.report(line, "%s is named for this group already; remove one of the lines", quote(name))
		return
	default:
		l.report(line, "%s has a group on line %d already, and crawlers read the two as one; put all of its rules there", quote(name), t.runLine)
	}
	t.last, t.runLine = l.runs, l.runLine
	l.run = append(l.run, t)
}

// begin ends the run of User-agent lines, and returns the section of the group.
func (l *linter) begin() *lintSection {
	if l.groups.open {
		l.groups.close()
		here := l.groups.here
		for len(l.sections) <= int(here) {
			l.sections = append(l.sections, lintSection{})
		}
		l.sections[here].nobodys = len(l.run) == 0
		for _, t := range l.run {
			t.sections = append(t.sections, here)
		}
		for _, d := range l.delays {
			l.sections[here].addDelay(l, d)
		}
	}
	return &l.sections[l.groups.here]
}

// last looks at the group that the end of the file ends.
func (l *linter) last() {
	if !l.groups.open {
		return
	}
	l.begin()
	if len(l.delays) > 0 || len(l.run) == 0 {
		return // it is there for the Crawl-delay; or for nobody, which has been said
	}
	for _, t := range l.run {
		if t.line < l.runLine {
			return // it adds nothing to a group above, which has been said
		}
		t.ruleless = true
	}
	l.report(l.runLine, "no rule follows, so this group may fetch everything; write \"Disallow:\" below if that is meant")
}
