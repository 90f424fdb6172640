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
		open := &p.openDouble
		if c == '\'' {
			open = &p.openSingle
		}
		if !*open {
			if end := closingQuote(s, i); end > 0 {
				return strings.TrimSpace(unescape(s[i+1 : end])), end + 1, true
			}
			*open = true // don't search again: the time must stay linear
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

// skipValue skips the value of an unknown parameter (RFC 9651, section 3.3),
// which may be a String, a Display String, or a Byte Sequence between colons.
func skipValue(s string, i int) int {
	i = skipBlank(s, i)
	if i == len(s) {
		return i
	}
	switch {
	case s[i] == '%' && i+1 < len(s) && s[i+1] == '"':
		i++
		fallthrough
	case s[i] == '"' || s[i] == '\'':
		if end := closingQuote(s, i); end > 0 {
			return end + 1
		}
	case s[i] == ':':
		// Other characters than base64 make no Byte Sequence (RFC 9651, section
		// 3.3.5), and the next colon is that of a scope.
		end := i + 1
		for end < len(s) && isBase64(s[end]) {
			end++
		}
		if end < len(s) && s[end] == ':' {
			return end + 1
		}
	}
	// An inner list is no valid value of a parameter, so it is not skipped: isSpace stops
	// at "(", and the words inside count.
	for i < len(s) && s[i] != ',' && s[i] != ';' && !isSpace(s[i]) {
		i++
	}
	return i
}

func isBase64(c byte) bool {
	letter := c | 0x20
	return 'a' <= letter && letter <= 'z' || isDigit(c) || c == '+' || c == '/' || c == '='
}

func skipBlank(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

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
