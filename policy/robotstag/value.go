package robotstag

import (
	"slices"
	"strings"
)

// rule handles a word of the vocabulary. The text behind the word begins at next. It
// returns where to continue.
func (p *parser) rule(e entry, s string, next int) int {
	hasValue := next < len(s) && (s[next] == ':' || s[next] == '=')
	start := next
	if hasValue {
		start = skipSpace(s, next+1)
	}
	switch e.kind {
	case flag, permissive:
		return p.flag(e, s, start, hasValue)
	}
	if !hasValue {
		p.unknown(e.name)
		return next
	}
	if e.kind == date {
		return p.date(s, start)
	}
	word, end, _ := p.word(s, start)
	word = strings.TrimSpace(word)
	value, ok := readNumber(word)
	if e.kind == size {
		value = strings.ToLower(word)
		ok = slices.Contains(sizes, value)
	}
	if ok {
		p.add(Rule{Name: e.name, Value: value, Source: p.source, Scope: p.scope})
		return end
	}
	if word == "" || p.isRuleOrScope(word, s, end) {
		p.unknown(e.name)
		return start
	}
	p.unknown(e.name + "=" + word)
	return end
}

// isRuleOrScope reports whether a word that is not a valid value is a rule, or the scope of
// the next word.
func (p *parser) isRuleOrScope(word, s string, end int) bool {
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
		case strings.HasPrefix(word, "?"), !p.isRuleOrScope(word, s, end):
			start = end
		}
	}
	if e.kind == flag {
		for name := range strings.FieldsSeq(e.name) {
			p.add(Rule{Name: name, Source: p.source, Scope: p.scope})
		}
	}
	return start
}

// date adds unavailable_after, whose value starts at start.
func (p *parser) date(s string, start int) int {
	const name = "unavailable_after"
	word, wordEnd, quoted := p.word(s, start)
	text := s[start:]
	if quoted {
		text = word
	}
	t, n, ok := readDate(text)
	end := start + n
	switch {
	case ok:
		p.add(Rule{Name: name, Value: t.Format(rfc3339), Time: t.Unix(), Source: p.source, Scope: p.scope})
	case quoted:
		p.unknown(name + "=" + text)
	case n == 0 && word != "" && !isDigit(word[0]) && p.isRuleOrScope(word, s, wordEnd):
		p.unknown(name)
	default:
		end = p.invalidDate(s, start)
		p.unknown(name + "=" + strings.TrimRight(s[start:end], " \t(\"'"))
	}
	if quoted {
		return wordEnd
	}
	return end
}

// invalidDate returns the end of a value that is not a date: its comma or semicolon, or the
// beginning of a rule or scope that merely lacks its comma. A colon of the value itself
// must not be mistaken for the colon of a scope.
func (p *parser) invalidDate(s string, i int) int {
	for i < len(s) {
		switch {
		case s[i] == ';', s[i] == ',' && !continuesDate(s[i+1:]):
			return i
		case endsWord(s[i]):
			i++
			continue
		}
		end := i
		for end < len(s) && !endsWord(s[end]) {
			end++
		}
		kind := lookup(s[i:end]).kind
		if kind != notAWord && kind != permissive || p.isScopeOfRule(s, i, end) {
			return i
		}
		i = end
	}
	return i
}

// isScopeOfRule reports whether the word s[i:end] is the scope of a rule that
// follows it: "ExampleBot: noindex", but not the hour of "15:00".
func (p *parser) isScopeOfRule(s string, i, end int) bool {
	next := skipSpace(s, end)
	if next == len(s) || s[next] != ':' && s[next] != '=' || !isName(s[i:end]) {
		return false
	}
	word, _, _ := p.word(s, skipSpace(s, next+1))
	return holdsRule(word)
}

// holdsRule reports whether a word of the vocabulary is in s.
func holdsRule(s string) bool {
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return r < 0x80 && endsWord(byte(r)) }) {
		if lookup(w).kind != notAWord {
			return true
		}
	}
	return false
}

func endsWord(c byte) bool {
	return isSpace(c) || isDelimiter(c) || c == '"' || c == '\''
}
