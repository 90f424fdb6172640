package robotstag

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// isSpace reports whether a byte only separates words. Such bytes are also the parentheses
// of an inner list (RFC 9651, section 3.1.1), control characters, which HTTP forbids and
// HTML does not, and backslashes, which configurations leave before quotes.
func isSpace(c byte) bool {
	return c <= ' ' || c == '(' || c == ')' || c == '\\' || c == 0x7f
}

func isDelimiter(c byte) bool {
	return c == ',' || c == ';' || c == ':' || c == '='
}

func skipSpace(s string, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}

// word returns the word or quoted string that starts at s[i], and where it
// ends. A quote that is not closed is an ordinary character, so that it cannot
// hide the rest of the line.
func (p *parser) word(s string, i int) (word string, end int, quoted bool) {
	if i == len(s) {
		return "", i, false
	}
	if c := s[i]; c == '"' || c == '\'' {
		if !strings.Contains(p.open, s[i:i+1]) {
			if end := closingQuote(s, i); end > 0 {
				return strings.TrimSpace(unescape(s[i+1 : end])), end + 1, true
			}
			p.open += s[i : i+1] // don't search again: the time must stay linear
		}
		i++
	}
	end = i
	for end < len(s) && !isSpace(s[end]) && !isDelimiter(s[end]) && s[end] != '"' {
		end++
	}
	return strings.TrimRight(s[i:end], "'"), end, false
}

// closingQuote returns the index of the quote that ends the string starting at
// s[start], or -1.
func closingQuote(s string, start int) int {
	for i := start + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[start]:
			return i
		}
	}
	return -1
}

// unescape undoes the escapes of a String (RFC 9651, section 3.3.3).
func unescape(s string) string { return escaped.ReplaceAllString(s, "$1") }

var escaped = regexp.MustCompile(`(?s)\\(.)`)

// unwrap removes the quotes of a value that is wholly in quotes, as sent by a web server
// with doubled quotes in its configuration.
func unwrap(s string) string {
	for range 3 {
		t := strings.Trim(s, " \t\r\n")
		if len(t) < 2 || t[0] != '"' && t[0] != '\'' || closingQuote(t, 0) != len(t)-1 {
			return s
		}
		s = unescape(t[1 : len(t)-1])
	}
	return s
}

// lastMember returns where the last member that ends within line[:limit] ends.
// Commas in strings do not end a member. A quote that is not closed by then is an
// ordinary character, as in a whole line, and hides no complete member.
func lastMember(line string, limit int) int {
	end, open := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ',' && i >= limit:
			return limit
		case c == ',':
			end = i
		case c == ' ' || c == '\t':
		case i >= limit:
			return end
		case c == '"' && !open:
			if n := closingQuote(line[:limit], i); n > 0 {
				i = n
			} else {
				open = true // don't search again: the time must stay linear
			}
		}
	}
	return end
}

// parameterValue is the value of an unknown parameter (RFC 9651, section 3.3), which may be a String,
// a Display String, or a Byte Sequence between colons. Other characters than base64 make no
// Byte Sequence (section 3.3.5), and the next colon is that of a scope. An inner list is no valid
// value of a parameter, so the words inside count.
var parameterValue = regexp.MustCompile(
	`(?s)^[ \t]*(?:%?"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|:[A-Za-z0-9+/=]*:|[^,;()\\\x00-\x20\x7f]*)`)

// product returns the product token of a word, without its version.
func product(word string) string {
	name, _, _ := strings.Cut(word, "/")
	return name
}

// isName reports whether a word may be a scope: "*", or anything with a letter.
func isName(word string) bool {
	return word == "*" || strings.ContainsFunc(word, func(r rune) bool {
		letter := r | 0x20
		return 'a' <= letter && letter <= 'z'
	})
}

// asciiSeparators replaces separators of other scripts, such as a no-break space or a
// full-width comma between two rules. Most lines are ASCII and are returned as they are.
func asciiSeparators(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return s
	}
	if !utf8.ValidString(s) {
		s = strings.ReplaceAll(s, "\xa0", " ") // a no-break space in Latin-1
	}
	return separators.Replace(s)
}

var separators = strings.NewReplacer(
	"\u00a0", " ", "\u2003", " ", "\u2009", " ", "\u200b", " ", "\u202f", " ", "\u3000", " ", "\ufeff", " ",
	"\uff0c", ",", "\u3001", ",", "\uff1b", ";", "\uff1a", ":", "\uff1d", "=",
	"\u201c", "\"", "\u201d", "\"", "\u201e", "\"", "\u2018", "'", "\u2019", "'",
)
