package robotstxt

import (
	"regexp"
	"slices"
	"strings"

	"robotsgate/policy/canonical"
)

// Readings returns the plain ways in which common servers read a path that RFC 9309, section 2.2.2,
// compares octet by octet: none for nearly all paths, at most two. /private%2Fx, //private/x and
// /private;v=1/x are /private/x to such servers. A gate that compares octets only can be circumvented
// with these spellings. Rules are never rewritten: /*;jsessionid must not become /*.
func Readings(path string) (readings []string) {
	bare, _, _ := strings.Cut(path, "?")
	if spellingsIn(bare) == (spellings{}) {
		return nil
	}
	query := path[len(bare):]
	plain, after, marked := strings.Cut(decoded(bare), "?")
	if marked { // the next server takes what follows for the query, and the request's own query for a part of it
		query = "?" + encoded(after) + strings.Replace(query, "?", "&", 1)
	}
	for _, text := range []string{plain, withoutParameters(plain)} {
		r := encoded(canonical.RemoveDotSegments(slashes.ReplaceAllString(text, "/"))) + query
		if r != path && !slices.Contains(readings, r) {
			readings = append(readings, r)
		}
	}
	return readings
}

var slashes = regexp.MustCompile("//+")

// decoded decodes a path until nothing changes, three times at most, and then takes backslashes for slashes.
func decoded(path string) string {
	for range 3 {
		b := make([]byte, 0, len(path))
		for i := 0; i < len(path); i++ {
			c, ok := unescape(path[i:])
			if path[i] == '%' && ok {
				i += 2
			} else {
				c = path[i]
			}
			b = append(b, c)
		}
		if len(b) == len(path) {
			break
		}
		path = string(b)
	}
	return strings.ReplaceAll(path, `\`, "/")
}

// encoded encodes what stands for something else in a URL, or cannot stand in one.
func encoded(text string) string {
	b := make([]byte, 0, len(text))
	for _, c := range []byte(text) {
		if encodes(c) || c == '%' || c == '#' {
			b = appendEscaped(b, c)
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// withoutParameters drops what follows a semicolon in every segment (RFC 3986, section 3.3).
func withoutParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";")
	}
	return strings.Join(segments, "/")
}

// spellings counts the places of a path that servers read differently: a percent sign, a slash, a
// backslash and a question mark that are encoded, a backslash, a parameter, an empty segment.
type spellings [6]int

// spellingsIn counts such places in a path or a pattern, up to its query.
func spellingsIn(path string) (found spellings) {
	path, _, _ = strings.Cut(path, "?")
	for i := range len(path) {
		kind := -1
		switch c := path[i]; {
		case c == '%':
			if c, ok := unescape(path[i:]); ok {
				kind = strings.IndexByte(`%/\?;`, c)
			}
		case c == '\\':
			kind = 2
		case c == '/' && strings.HasPrefix(path[i+1:], "/"):
			kind = 5
		case c == ';':
			kind = 4
		}
		if kind >= 0 {
			found[kind]++
		}
	}
	return found
}

// SpellsLike reports whether the rule's pattern has all the spellings of path that servers
// read differently, each as often, so that the origin has decided about exactly this path.
// It does not for a path in which some server finds a dot segment.
func (r Rule) SpellsLike(path string) bool {
	found, own := spellingsIn(path), spellingsIn(r.Pattern)
	for kind, n := range found {
		if own[kind] < n {
			return false
		}
	}
	bare, _, _ := strings.Cut(path, "?")
	return found != spellings{} && !canonical.HasDotSegment(withoutParameters(decoded(bare)))
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
	return decoded != path && canonical.HasDotSegment("/"+decoded)
}

var decodeSeparators = strings.NewReplacer("%2F", "/", "%2f", "/", "%5C", "/", "%5c", "/", `\`, "/")
