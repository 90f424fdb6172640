// Package match compares the patterns of Allow and Disallow lines with paths (RFC 9309,
// section 2.2.2): both are brought into one normal form, see [Normal] and [NormalPath], and
// a [Finder] matches what follows the first wildcard.
package match

import "strings"

// A rule and a path are compared octet by octet in one normal form, so that the different
// spellings of a character are equal (RFC 9309, section 2.2.2):
//
//   - bytes that may not stand in a URL are percent-encoded: those outside ASCII,
//     controls, space and "<>\^`{|}
//   - the hex digits of a percent-encoded byte are upper case
//   - unreserved characters are never encoded: %7E is ~
//   - reserved characters stay as they are: %2F is not a slash
//   - in a path * and $ are encoded, so that in a rule %2A and %24 mean the
//     characters themselves, and * and $ the wildcards
//   - a percent sign without two hex digits stays as it is

const upperHex = "0123456789ABCDEF"

// The treatment of a byte. There is one table for paths and one for rules.
const (
	keep = iota
	encode
	percent
)

var (
	pathBytes = byteTable("*$")
	ruleBytes = byteTable("$") // a $ that ends the pattern is not looked up
)

func byteTable(also string) (table [256]uint8) {
	for c := range table {
		if c <= ' ' || c >= 0x7F || strings.IndexByte("\"<>\\^`{|}"+also, byte(c)) >= 0 {
			table[c] = encode
		}
	}
	table['%'] = percent
	return table
}

// NormalPath returns the normal form of the path and query of a URL.
func NormalPath(path string) string {
	if firstChange(path, &pathBytes) < 0 {
		return path
	}
	var buf [256]byte // most paths fit, and need one allocation then
	return string(appendNormal(buf[:0], path, &pathBytes))
}

// Normal returns the normal form of a rule's pattern.
func Normal(pattern string) string {
	body, anchored := strings.CutSuffix(pattern, "$")
	if firstChange(body, &ruleBytes) < 0 {
		return pattern
	}
	normal := appendNormal(nil, body, &ruleBytes)
	if anchored {
		normal = append(normal, '$')
	}
	return string(normal)
}

// Encodes reports whether the normal form of a path has c percent-encoded.
func Encodes(c byte) bool { return pathBytes[c] == encode }

// firstChange returns the first place where s is not in normal form, or -1.
func firstChange(s string, table *[256]uint8) int {
	for i := 0; i < len(s); i++ {
		switch table[s[i]] {
		case encode:
			return i
		case percent:
			c, ok := Unescape(s[i:])
			if ok && (Unreserved(c) || isLowerHex(s[i+1]) || isLowerHex(s[i+2])) {
				return i
			}
		}
	}
	return -1
}

// appendNormal appends the normal form of s to dst.
func appendNormal(dst []byte, s string, table *[256]uint8) []byte {
	stray := 0 // where in dst the last percent sign without hex digits is
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch table[c] {
		case keep:
			if completes(dst[stray:], c) {
				dst = AppendEscaped(dst, c)
				continue
			}
			dst = append(dst, c)
		case encode:
			dst = AppendEscaped(dst, c)
		case percent:
			c, ok := Unescape(s[i:])
			if !ok {
				stray = len(dst)
				dst = append(dst, '%')
				continue
			}
			i += 2
			if Unreserved(c) && !completes(dst[stray:], c) {
				dst = append(dst, c)
			} else {
				dst = AppendEscaped(dst, c)
			}
		}
	}
	return dst
}

// completes reports whether c would become the second hex digit of the stray percent
// sign that tail begins with, so that the three would be read as an escape: %%37E is such
// a sign, a 7 and an E, not a ~. The caller then writes the E as %45.
func completes(tail []byte, c byte) bool {
	return len(tail) == 2 && tail[0] == '%' && IsHex(tail[1]) && IsHex(c)
}

// AppendEscaped appends c, percent-encoded, to dst.
func AppendEscaped(dst []byte, c byte) []byte {
	return append(dst, '%', upperHex[c>>4], upperHex[c&15])
}

// Unescape returns the byte that s, which begins with a percent sign, stands for.
func Unescape(s string) (c byte, ok bool) {
	if len(s) < 3 || !IsHex(s[1]) || !IsHex(s[2]) {
		return 0, false
	}
	return hexValue(s[1])<<4 | hexValue(s[2]), true
}

// IsHex reports whether c is a hexadecimal digit.
func IsHex(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' || isLowerHex(c)
}

func isLowerHex(c byte) bool { return 'a' <= c && c <= 'f' }

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return (c | 0x20) - 'a' + 10
}

// Unreserved reports whether c is an unreserved character (RFC 3986, section 2.3).
func Unreserved(c byte) bool {
	letter := c | 0x20
	return 'a' <= letter && letter <= 'z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
