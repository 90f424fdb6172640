package usage

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// parseDictionary reads a Dictionary strictly (RFC 9651, 4.2.2), and calls member for each of its
// members in their order, repeated keys included. The token is that of an Item that is a Token,
// without its parameters; "" for an Inner List or an Item of another type. One mistake makes the
// result false, whatever has been passed to member by then.
//
// All other structured fields are read with package httpsfv. Here it would not do:
//   - It builds a tree. Every request reads the lines in robots.txt, and 512 KiB of them would
//     take 49 MB instead of 3 (TestHostile).
//   - It rejects Byte Sequences without padding, which 4.2.7 asks parsers to accept.
func parseDictionary(s string, member func(key, token string)) bool {
	r := itemReader{strings.TrimLeft(s, " ")}
	for r.rest != "" {
		key, ok := r.key()
		if !ok {
			return false
		}
		token := ""
		if r.take("=") {
			if token, ok = r.itemOrInnerList(); !ok {
				return false
			}
		}
		if !r.parameters() {
			return false
		}
		member(key, token)
		r.while(space)
		if r.rest == "" {
			return true
		}
		if !r.take(",") {
			return false
		}
		if r.while(space); r.rest == "" {
			return false // a comma at the end
		}
	}
	return true
}

// An itemReader reads the parts of structured fields (RFC 9651, 4.2). Its methods return false, or an ok
// that is false, after a mistake.
type itemReader struct{ rest string }

// take removes a prefix, if there is one.
func (r *itemReader) take(prefix string) (ok bool) {
	r.rest, ok = strings.CutPrefix(r.rest, prefix)
	return ok
}

// while removes the first bytes that are in the set, and returns them.
func (r *itemReader) while(set string) string {
	all := r.rest
	r.rest = strings.TrimLeft(all, set)
	return all[:len(all)-len(r.rest)]
}

// until removes and returns what is in front of end, and removes end.
func (r *itemReader) until(end string) (before string, ok bool) {
	before, r.rest, ok = strings.Cut(r.rest, end)
	return before, ok
}

const (
	letters = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower   = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

// key reads a key (4.2.3.3).
func (r *itemReader) key() (key string, ok bool) {
	key = r.while(lower + digits + "_-.*")
	return key, isKey(key)
}

// isKey reports whether s is a key (3.1.2).
func isKey(s string) bool {
	return s != "" && strings.IndexByte(lower+"*", s[0]) >= 0 && strings.TrimLeft(s, lower+digits+"_-.*") == ""
}

// itemOrInnerList reads the value of a member without its parameters (4.2.1.1).
func (r *itemReader) itemOrInnerList() (token string, ok bool) {
	if !r.take("(") {
		return r.bareItem()
	}
	for { // 4.2.1.2
		r.while(" ")
		if r.take(")") {
			return "", true
		}
		if _, ok := r.bareItem(); !ok || !r.parameters() {
			return "", false
		}
		if !strings.HasPrefix(r.rest, " ") && !strings.HasPrefix(r.rest, ")") {
			return "", false
		}
	}
}

// parameters reads the parameters of an Item or Inner List, of which there may be none (4.2.3.2).
func (r *itemReader) parameters() bool {
	for r.take(";") {
		r.while(" ")
		if _, ok := r.key(); !ok {
			return false
		}
		if r.take("=") {
			if _, ok := r.bareItem(); !ok {
				return false
			}
		}
	}
	return true
}

// bareItem reads an Item without its parameters, and returns it if it is a Token (4.2.3.1).
func (r *itemReader) bareItem() (token string, ok bool) {
	switch {
	case r.take("?"):
		return "", r.take("0") || r.take("1")
	case r.take("@"):
		return "", isInteger(r.while(digits + "-."))
	case r.take(`"`):
		return "", r.text()
	case r.take(":"):
		text, ok := r.until(":")
		return "", ok && isBase64(text)
	case r.take(`%"`):
		text, ok := r.until(`"`)
		return "", ok && isDisplayText(text)
	}
	if n := r.while(digits + "-."); n != "" {
		return "", isNumber(n)
	}
	token = r.while(letters + digits + "!#$%&'*+-.^_`|~:/")
	return token, token != "" && strings.IndexByte(letters+"*", token[0]) >= 0
}

// text removes a String behind its first quote (4.2.5).
func (r *itemReader) text() bool {
	for i := 0; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '"':
			r.rest = r.rest[i+1:]
			return true
		case !isPrintable(c):
			return false
		case c == '\\':
			if i++; i == len(r.rest) || r.rest[i] != '"' && r.rest[i] != '\\' {
				return false
			}
		}
	}
	return false
}

func isPrintable[T byte | rune](c T) bool { return ' ' <= c && c <= '~' }

// isDisplayText reports whether s is the text of a Display String: UTF-8, with escapes in lower case (4.2.10).
func isDisplayText(s string) bool {
	if strings.ContainsFunc(s, func(c rune) bool { return !isPrintable(c) }) {
		return false
	}
	plain, err := url.PathUnescape(s)
	if err != nil || !utf8.ValidString(plain) {
		return false
	}
	for _, escape, found := strings.Cut(s, "%"); found; _, escape, found = strings.Cut(escape, "%") {
		if strings.ContainsAny(escape[:2], "ABCDEF") {
			return false
		}
	}
	return true
}

// isBase64 reports whether s is the text of a Byte Sequence, with or without its padding (4.2.7).
func isBase64(s string) bool {
	bytes := strings.TrimRight(s, "=")
	if padding := len(s) - len(bytes); padding > 2 || padding > 0 && len(s)%4 != 0 {
		return false
	}
	return len(bytes)%4 != 1 && strings.Trim(bytes, letters+digits+"+/") == ""
}

// isInteger reports whether s is an Integer (3.3.1).
func isInteger(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && len(s) <= 15 && strings.Trim(s, digits) == ""
}

// isNumber reports whether s is an Integer or a Decimal (3.3.2).
func isNumber(s string) bool {
	whole, fraction, decimal := strings.Cut(s, ".")
	if !decimal {
		return isInteger(s)
	}
	return isInteger(whole) && len(strings.TrimPrefix(whole, "-")) <= 12 && isInteger(fraction) && len(fraction) <= 3 && fraction[0] != '-'
}
