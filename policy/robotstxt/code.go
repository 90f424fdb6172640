package robotstxt

import "strings"

// RFC 9309, section 2.2.2, has reserved characters percent-encoded on both sides before they are
// compared, so a character of a URL equals its escape. Exceptions are the characters that servers
// tell apart from their escapes: in a path / ? # and %, in a query # % & = and +.
//
// In the code of a path or a pattern, a character and its escape are the character itself, except that
//
//   - the escape of an exception is a byte of its own, from 1 on
//   - a percent sign that begins no escape is the escape of a percent sign
//   - * and $ are bytes of their own: in a pattern * and a $ at the end are the wildcards
//   - a control character is two bytes, of which the second is never the first of another character
//
// So no text is found in the middle of a character. In a pattern all exceptions have their byte, since
// only the place in the URL tells whether it is one: see inPath and inQuery.
const (
	exceptions = pathOnly + always + queryOnly
	pathOnly   = "/?"
	always     = "#%"
	queryOnly  = "&=+"

	star, dollar     = 0x0E, 0x0F
	control, ordinal = 0x08, 0x10 // the high and the low half of a control character are added
)

// Where an escape in a pattern is compared with a place in a path or in a query, it equals the
// characters that are no exceptions there.
var (
	inPath  = strings.NewReplacer("\x05", "&", "\x06", "=", "\x07", "+")
	inQuery = strings.NewReplacer("\x01", "/", "\x02", "?")
)

// hasEscapes reports whether a code has escapes of exceptions.
func hasEscapes(code string) bool {
	for i := range len(code) {
		if code[i] <= byte(len(exceptions)) {
			return true
		}
	}
	return false
}

// patternCode returns the code of a rule's pattern. Unless it is text itself, the code takes memory of its own.
func patternCode(text string) string {
	body, anchored := strings.CutSuffix(text, "$")
	if isCode(body) {
		return text
	}
	code := appendCode(nil, body, exceptions, '*')
	if anchored {
		code = append(code, '$')
	}
	if string(code) == text {
		return text
	}
	return string(code)
}

// isCode reports whether s is the code of a pattern or a path for certain.
func isCode(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '%' || c == '$' || c == '*' {
			return false
		}
	}
	return true
}

// appendCode appends the code of s to dst. Apart has the exceptions. The wildcard, if it is not 0, is kept.
func appendCode(dst []byte, s, apart string, wildcard byte) []byte {
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], s[i] == '%'
		if e, ok := unescape(s[i:]); escaped && ok {
			c = e
			i += 2
		}
		switch {
		case escaped && strings.IndexByte(apart, c) >= 0:
			dst = append(dst, byte(1+strings.IndexByte(exceptions, c)))
		case c == '*' && (escaped || c != wildcard):
			dst = append(dst, star)
		case c == '$':
			dst = append(dst, dollar)
		case c < ' ':
			dst = append(dst, control|c>>4, ordinal|c&15)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// octets returns the length of a pattern by which the longest is found: as it is written, but with escapes
// of unreserved characters decoded, and what cannot stand in a URL encoded.
func octets(pattern string) (n int) {
	for i := 0; i < len(pattern); i++ {
		c, ok := unescape(pattern[i:])
		switch {
		case pattern[i] != '%' && !encodes(pattern[i]):
			n++
		case pattern[i] == '%' && ok && unreserved(c):
			n, i = n+1, i+2
		case pattern[i] == '%' && ok:
			n, i = n+3, i+2
		default:
			n += 3
		}
	}
	return n
}

// encodes reports whether c cannot stand in a URL, so that it is percent-encoded.
func encodes(c byte) bool {
	return c <= ' ' || c >= 0x7F || strings.IndexByte("\"<>\\^`{|}", c) >= 0
}

// appendEscaped appends c, percent-encoded, to dst.
func appendEscaped(dst []byte, c byte) []byte {
	const upperHex = "0123456789ABCDEF"
	return append(dst, '%', upperHex[c>>4], upperHex[c&15])
}

// unescape returns the byte that s, which begins with a percent sign, stands for.
func unescape(s string) (c byte, ok bool) {
	if len(s) < 3 || !isHex(s[1]) || !isHex(s[2]) {
		return 0, false
	}
	return hexValue(s[1])<<4 | hexValue(s[2]), true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' || 'a' <= c && c <= 'f'
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return (c | 0x20) - 'a' + 10
}

// unreserved reports whether c is an unreserved character (RFC 3986, section 2.3).
func unreserved(c byte) bool {
	letter := c | 0x20
	return 'a' <= letter && letter <= 'z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
