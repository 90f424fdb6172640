package robotstag

import (
	"slices"
	"strings"
)

// ParseHeader reads the lines of the two fields. A scope never extends to the next line.
func ParseHeader(robotsTag, xRobotsTag []string) Tags {
	p := parser{source: RobotsTag}
	p.field(robotsTag)
	p.source = XRobotsTag
	p.field(xRobotsTag)
	return p.tags
}

// ParseMeta reads one <meta> with this name and content. The name is the
// scope; the content is a list of rules, in which no other scope can be set.
func ParseMeta(name, content string) Tags {
	name = product(strings.TrimSpace(name))
	if !isName(name) || slices.Contains(htmlNames, strings.ToLower(name)) {
		return Tags{}
	}
	p := parser{source: Meta, fixed: true, scope: strings.Clone(name)}
	p.list(unwrap(asciiSeparators(content)))
	if len(p.tags.Rules) == 0 && !(Rule{Scope: name}).Global() {
		p.tags.Unknown = nil // the name is not a crawler's, and the content is prose
	}
	return p.tags
}

// htmlNames are the metadata names that HTML itself defines (WHATWG HTML, section
// 4.2.5.1; viewport: CSS Viewport). A description that mentions noindex is no rule for a
// crawler called "description".
var htmlNames = []string{
	"author", "keywords", "viewport", "referrer", "generator", "description", "theme-color", "color-scheme", "application-name",
}

// A syntax is the syntax that has set the current scope. It decides where the scope ends.
type syntax uint8

const (
	unscoped syntax = iota
	prefix          // "name:": to the end of the line (X-Robots-Tag)
	group           // "name=": over commas, up to ";" (repext-00)
	member          // "name;": up to "," (repext-03)

	// A member that ends a group. Its name may be meant as the last rule of the
	// group, so unlike in other members "name=" begins the next group.
	groupMember
)

// A parser reads lines into its collector.
type parser struct {
	collector
	source Source
	scope  string
	syntax syntax
	fixed  bool // the scope can't be changed
	nested bool // inside a quoted list

	open string // the quotes of this list that have no end
}

// MaxField bounds the bytes read of one field, all its lines together as if they were joined
// by ", ". A member that extends beyond it is dropped whole: half a member may mean something else.
const MaxField = 8192

func (p *parser) field(lines []string) {
	left := MaxField
	for i, line := range lines {
		if i > 0 {
			left -= len(", ")
		}
		cut := len(line) > left
		if cut {
			p.tags.Truncated = true
			line = line[:lastMember(line, max(left, 0))]
		}
		left -= len(line)
		p.scope, p.syntax = "*", unscoped
		p.list(unwrap(asciiSeparators(line)))
		if cut {
			return
		}
	}
}

// list reads one line, one <meta>'s content, or a quoted part of either.
func (p *parser) list(s string) {
	p.open = ""
	first := true // nothing of this member has been read
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case isSpace(c), c == ':', c == '=':
			i++
			continue
		case c == ',':
			i++
			first = true
			if p.syntax == member || p.syntax == groupMember {
				p.enter("*", unscoped)
			}
			continue
		case c == ';':
			i++
			switch {
			case p.syntax == group:
				p.enter("*", unscoped)
			case first:
				p.enter("*", member) // an empty name
			}
			first = false
			continue
		}
		word, end, quoted := p.word(s, i)
		next := skipSpace(s, end)
		if e := lookup(word); e.kind != notAWord {
			i = p.rule(e, s, next)
		} else if n, ok := p.setScope(word, quoted, first, s, next); ok {
			i = n
		} else {
			if quoted && strings.ContainsAny(word, " \t,;:=") {
				p.quoted(word)
			} else if word != "*" {
				p.unknown(word)
			}
			i = end
		}
		first = false
	}
}

// setScope handles a word that is not in the vocabulary, if the delimiter at next makes it a
// scope or a parameter. It returns where to continue.
func (p *parser) setScope(word string, quoted, first bool, s string, next int) (int, bool) {
	if next == len(s) || p.fixed {
		return 0, false
	}
	name := product(word)
	// A String (RFC 9651, section 3.3.3) may hold anything, but with a rule in
	// it it is more likely a list in quotes.
	named := isName(name) && !(quoted && holdsRule(word))
	switch s[next] {
	case ':':
		if named {
			p.enter(name, prefix)
			return next + 1, true
		}
	case '=':
		if p.syntax == member && !first {
			// An unknown parameter (RFC 9651, section 3.1.2): its value is
			// skipped, or "x=noindex" would be a rule.
			p.unknown(word)
			return next + 1 + len(parameterValue.FindString(s[next+1:])), true
		}
		if named {
			p.enter(name, group)
			return next + 1, true
		}
	case ';':
		if named && first {
			by := member
			if p.syntax == group {
				by = groupMember
			}
			p.enter(name, by)
			return next + 1, true
		}
	}
	return 0, false
}

// enter begins a scope. Unscoped ends one: the following rules are for all crawlers, since in doubt the
// wider reading loses no restriction.
func (p *parser) enter(scope string, by syntax) {
	if p.fixed {
		return
	}
	// "X-Robots-Tag: X-Robots-Tag: noindex" is a mistake in a configuration: no
	// crawler has that name, so it would bind no crawler.
	if strings.EqualFold(scope, "x-robots-tag") || strings.EqualFold(scope, "robots-tag") {
		scope = "*"
	}
	// The clone does not keep the whole field in memory.
	p.scope, p.syntax = strings.Clone(scope), by
}

// quoted reads a string that holds more than a name, such as the value of
// ExampleBot: "noindex, nofollow". A scope set inside ends with the string.
func (p *parser) quoted(s string) {
	if p.nested {
		p.unknown(s)
		return
	}
	saved := *p
	p.nested = true
	p.list(s)
	saved.collector = p.collector
	*p = saved
}
