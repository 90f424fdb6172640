package robotstxt

import (
	"strings"
	"unicode/utf8"

	"robotsgate/policy/robotstxt/internal/match"
)

// spellings counts the places of a path that servers read differently, by kind.
type spellings [7]int

const (
	encodedSlash    = iota // %2F
	backslash              // %5C, or the character itself
	emptySegment           // //
	parameter              // ;
	encodedReserved        // another character of RFC 3986, 2.2
	notUTF8                // an encoded byte outside ASCII
	opaque                 // another escape that ends the path or is decoded twice
)

// spellingsIn counts such places in a path or a pattern, up to its query.
func spellingsIn(path string) (found spellings) {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '?':
			path = path[:i] // which ends the loop
		case ';':
			found[parameter]++
		case '\\':
			found[backslash]++
		case '/':
			if strings.HasPrefix(path[i+1:], "/") {
				found[emptySegment]++
			}
		case '%':
			switch c, ok := match.Unescape(path[i:]); {
			case !ok:
			case c == '/':
				found[encodedSlash]++
			case c == '\\':
				found[backslash]++
			case c >= 0x80:
				if n := encodedRune(path[i:]); n > 0 {
					i += n - 1
				} else {
					found[notUTF8]++
				}
			case c == '%', c == '?', c == '#', c < ' ', c == 0x7f, c == ' ' && (i+3 == len(path) || path[i+3] == '?'):
				found[opaque]++
			case !staysEncoded(c) && !match.Unreserved(c):
				found[encodedReserved]++
			}
		}
	}
	return found
}

// encodedRune returns the length of the escapes at the beginning of path that encode one
// character outside ASCII in UTF-8; 0 if they do not.
func encodedRune(path string) int {
	var char [utf8.UTFMax]byte
	for n := range char {
		c, ok := match.Unescape(path[3*n:])
		if !ok || path[3*n] != '%' {
			return 0
		}
		char[n] = c
		if r, size := utf8.DecodeRune(char[:n+1]); size == n+1 && r != utf8.RuneError {
			return 3 * size
		}
	}
	return 0
}

// HidesDotSegment reports whether path has a dot segment next to an encoded
// separator, as in /public/..%2Fprivate: servers that decode the separator first
// resolve it, the others take it for a name. No legitimate request needs it.
func HidesDotSegment(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	if !strings.ContainsAny(path, `%\`) {
		return false // most paths, without allocating
	}
	decoded := decodeSeparators.Replace(path)
	return decoded != path && hasDotSegment("/"+decoded)
}

var decodeSeparators = strings.NewReplacer("%2F", "/", "%2f", "/", "%5C", "/", "%5c", "/", `\`, "/")

// SpellsLike reports whether the rule's pattern has all the spellings of path that servers
// read differently, each as often, so that the origin has decided about exactly this path.
// It does not for a path in which some server finds a dot segment.
func (r Rule) SpellsLike(path string) bool {
	found, own := spellingsIn(path), spellingsIn(r.Pattern)
	if found == (spellings{}) {
		return false
	}
	for kind, n := range found {
		if own[kind] < n {
			return false
		}
	}
	bare, _, _ := strings.Cut(path, "?")
	for segment := range strings.SplitSeq(decodePath(forward(decodePath(bare, slash)), slash), "/") {
		segment, _, _ = strings.Cut(segment, ";")
		if dots(segment) > 0 {
			return false
		}
	}
	return true
}
