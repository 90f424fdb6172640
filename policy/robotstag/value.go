package robotstag

import "strings"

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
		p.unknown(e.name)
		return next
	}
	if e.kind == date {
		return p.date(s, start)
	}
	if start == len(s) || isDelimiter(s[start]) {
		p.unknown(e.name)
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
		p.unknown(e.name)
		return start
	}
	p.unknown(e.name + "=" + word)
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
			p.unknown(name + "=" + text)
		}
		return quotedEnd
	case ok:
		return start + n
	}
	// Not a date. Its colons must not be mistaken for a scope's, nor may a rule
	// that merely lacks its comma be lost: up to the next comma only words of
	// the vocabulary count.
	if word, end, _ := p.word(s, start); n == 0 && p.speaks(word, s, end) {
		p.unknown(name)
		return start
	}
	end := start + n + firstRule(s[start+n:])
	p.unknown(name + "=" + strings.TrimRight(s[start:end], " \t(\"'"))
	return end
}

// firstRule returns where the first word of s is that restricts, or else where
// the member or s ends.
func firstRule(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == ',' || s[i] == ';' {
			return i
		}
		if endsWord(s[i]) {
			continue
		}
		start := i
		for i+1 < len(s) && !endsWord(s[i+1]) {
			i++
		}
		if kind := lookup(s[start : i+1]).kind; kind != notAWord && kind != permissive {
			return start
		}
	}
	return len(s)
}

func endsWord(c byte) bool {
	return isSpace(c) || isDelimiter(c) || c == '"' || c == '\''
}
