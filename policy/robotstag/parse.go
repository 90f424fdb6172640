package robotstag

import "strings"

// ParseHeader reads the lines of the two fields. Each line stands for itself:
// a scope never reaches into the next one, so joining or splitting lines by an
// intermediary can't widen what a line without a scope says.
func ParseHeader(robotsTag, xRobotsTag []string) Tags {
	p := parser{source: RobotsTag, collector: collector{borrowed: true}}
	p.field(robotsTag)
	p.source = XRobotsTag
	p.field(xRobotsTag)
	return p.tags
}

// ParseMeta reads one <meta> with this name and content. The name is the
// scope; the content is a list of rules, in which no other scope can be set.
func ParseMeta(name, content string) Tags {
	name = product(strings.TrimSpace(name))
	if !isName(name) || otherMeaning(name) {
		return Tags{}
	}
	p := parser{source: Meta, fixed: true, scope: name, collector: collector{borrowed: true}}
	// The words of a name that isn't a crawler's are prose.
	p.quiet = !everyone(name)
	p.list(unwrap(plain(content)))
	return p.tags
}

// otherMeaning reports whether HTML itself gives a metadata name a meaning
// (WHATWG HTML, section 4.2.5.1; viewport: CSS Viewport). A description that
// speaks of noindex is no rule for a crawler called "description".
func otherMeaning(name string) bool {
	switch len(name) {
	case 6, 8, 9, 11, 12, 16:
		switch strings.ToLower(name) {
		case "author", "keywords", "viewport", "referrer", "generator", "description",
			"theme-color", "color-scheme", "application-name":
			return true
		}
	}
	return false
}

// A syntax is the one by which the scope in force was set; it decides where
// the scope ends.
type syntax uint8

const (
	unscoped syntax = iota
	prefix          // "name:": to the end of the line (X-Robots-Tag)
	group           // "name=": over commas, up to ";" (repext-00, section 3.1)
	member          // "name;": up to "," (repext-03, section 3.1)
)

// A parser reads lines into its collector.
type parser struct {
	collector
	source Source
	scope  string
	syntax syntax
	fixed  bool // the scope can't be changed
	quiet  bool // unknown words are of no interest
	nested bool // inside a quoted list

	openSingle, openDouble bool // a quote without an end was seen in this list
}

func (p *parser) field(lines []string) {
	for line := range fitting(lines, &p.tags.Truncated) {
		p.scope, p.syntax = "*", unscoped
		p.list(unwrap(plain(line)))
	}
}

// list reads one line, one <meta>'s content, or a quoted part of either.
func (p *parser) list(s string) {
	p.openSingle, p.openDouble = false, false
	first := true // nothing of this member has been read
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case isSpace(c), c == ':', c == '=':
			i++
			continue
		case c == ',':
			i++
			first = true
			if p.syntax == member {
				p.reset()
			}
			continue
		case c == ';':
			i++
			switch {
			case p.syntax == group:
				p.reset()
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
				p.note(word)
			}
			i = end
		}
		first = false
	}
}

// setScope handles a word that is not in the vocabulary if what follows it at
// next makes it a scope or a parameter. It returns where to read on.
func (p *parser) setScope(word string, quoted, first bool, s string, next int) (int, bool) {
	if next == len(s) || p.fixed {
		return 0, false
	}
	name := product(word)
	named := isName(name) && !(quoted && strings.ContainsAny(name, ",;:="))
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
			p.note(word)
			return skipValue(s, next+1), true
		}
		if named {
			p.enter(name, group)
			return next + 1, true
		}
	case ';':
		// Within a group commas don't begin members, so the word is an
		// unknown rule and ";" ends the group.
		if named && first && p.syntax != group {
			p.enter(name, member)
			return next + 1, true
		}
	}
	return 0, false
}

func (p *parser) enter(scope string, by syntax) {
	if p.fixed {
		return
	}
	// "X-Robots-Tag: X-Robots-Tag: noindex" is a slip in a configuration: no
	// crawler has that name, so it would be a rule for nobody.
	if equalFold(scope, "x-robots-tag") || equalFold(scope, "robots-tag") {
		scope = "*"
	}
	p.scope, p.syntax = scope, by
}

// reset ends a scope. What follows is meant for everyone: where the site's
// wish is in doubt, the wider reading is the one that loses no restriction.
func (p *parser) reset() {
	if !p.fixed {
		p.scope, p.syntax = "*", unscoped
	}
}

// quoted reads a string that holds more than a name, such as the value of
// ExampleBot: "noindex, nofollow". A scope set inside ends with the string.
func (p *parser) quoted(s string) {
	if p.nested {
		p.note(s)
		return
	}
	saved := *p
	p.nested = true
	p.list(s)
	saved.collector = p.collector
	*p = saved
}

func (p *parser) note(word string) {
	if !p.quiet {
		p.unknown(word)
	}
}

// rule handles a word of the vocabulary; what follows it is at next. It
// returns where to read on.
func (p *parser) rule(e entry, s string, next int) int {
	hasValue := next < len(s) && (s[next] == ':' || s[next] == '=')
	start := next
	if hasValue {
		start = skipSpace(s, next+1)
	}
	switch e.kind {
	case flag, both, permissive:
		return p.flag(e, s, start, hasValue)
	}
	if !hasValue {
		p.note(e.name)
		return next
	}
	if e.kind == date {
		return p.date(s, start)
	}
	if start == len(s) {
		p.note(e.name)
		return start
	}
	if isDelimiter(s[start]) {
		p.note(e.name)
		return start
	}
	word, end, _ := p.word(s, start)
	word = strings.TrimSpace(word)
	value, ok := readNumber(word)
	if e.kind == size {
		value, ok = readSize(word)
	}
	if ok {
		p.add(Rule{Name: e.name, Value: value, Source: p.source, Scope: p.scope})
		return end
	}
	if p.speaks(word, s, end) {
		p.note(e.name)
		return start
	}
	p.note(e.name + "=" + word)
	return end
}

// speaks reports whether a word that is no valid value is to be read as what
// it says: a rule, or the scope of what comes after it.
func (p *parser) speaks(word, s string, end int) bool {
	if lookup(word).kind != notAWord {
		return true
	}
	next := skipSpace(s, end)
	return next < len(s) && (s[next] == ':' || s[next] == '=')
}

// flag adds a rule that needs no value. Only the Boolean false of a structured
// field takes it back: "noindex=0" is more likely a mistake than a permission.
func (p *parser) flag(e entry, s string, start int, hasValue bool) int {
	if hasValue && start < len(s) && !isDelimiter(s[start]) {
		word, end, quoted := p.word(s, start)
		switch {
		case word == "?0" && !quoted:
			return end
		case strings.HasPrefix(word, "?"), !p.speaks(word, s, end):
			start = end
		}
	}
	switch e.kind {
	case flag:
		p.add(Rule{Name: e.name, Source: p.source, Scope: p.scope})
	case both:
		p.add(Rule{Name: "noindex", Source: p.source, Scope: p.scope})
		p.add(Rule{Name: "nofollow", Source: p.source, Scope: p.scope})
	}
	return start
}

// date adds unavailable_after, whose value starts at start.
func (p *parser) date(s string, start int) int {
	const name = "unavailable_after"
	text, quotedEnd := s[start:], 0
	if start < len(s) && (s[start] == '"' || s[start] == '\'') {
		word, end, quoted := p.word(s, start)
		if quoted {
			text, quotedEnd = word, end
		}
	}
	t, n, ok := readDate(text)
	if ok {
		p.add(Rule{Name: name, Value: t.Format(rfc3339), Time: t.Unix(), Source: p.source, Scope: p.scope})
	}
	switch {
	case quotedEnd > 0:
		if !ok {
			p.note(name + "=" + text)
		}
		return quotedEnd
	case ok:
		return start + n
	}
	// Not a date. Its colons must not be mistaken for a scope's, nor may a rule
	// that merely lacks its comma be lost: up to the next comma only words of
	// the vocabulary count.
	if word, end, _ := p.word(s, start); n == 0 && p.speaks(word, s, end) {
		p.note(name)
		return start
	}
	end := start + n
	for end < len(s) && s[end] != ',' && s[end] != ';' {
		end++
	}
	p.note(name + "=" + strings.TrimSpace(s[start:end]))
	for word := range strings.FieldsSeq(s[start:end]) {
		if e := lookup(word); e.kind == flag || e.kind == both {
			p.rule(e, "", 0)
		}
	}
	return end
}
