package robotstxt

import (
	"slices"
	"strings"
)

// RFC 9309, 2.2.2 compares octets: to it /private%2Fx, //private/x and
// /private;v=1/x have nothing to do with /private/x. Common servers read them as
// that path all the same:
//
//   - nginx and Apache httpd decode %2F, resolve dot segments after that, and merge
//     slashes
//   - IIS takes a backslash, %5C too, for a slash
//   - Tomcat and Jetty drop path parameters, which begin with a semicolon
//
// A gate that follows the letter alone can be walked around. So these spellings are
// judged a second time, as such servers read them. Rules are never rewritten:
// /*;jsessionid must not become /*.

// A spelling is a set of the ways to write a path that servers read differently.
type spelling uint8

const (
	encodedSlash     spelling = 1 << iota // %2F
	encodedBackslash                      // %5C, or the character itself
	emptySegment                          // //
	parameter                             // ;
)

// spellingsIn returns the spellings in a path or a pattern, up to its query.
func spellingsIn(path string) (found spelling) {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '?':
			return found
		case ';':
			found |= parameter
		case '\\':
			found |= encodedBackslash
		case '/':
			if strings.HasPrefix(path[i+1:], "/") {
				found |= emptySegment
			}
		case '%':
			switch c, _ := unescape(path[i:]); c {
			case '/':
				found |= encodedSlash
			case '\\':
				found |= encodedBackslash
			}
		}
	}
	return found
}

// Readings returns the other paths that common servers take path for, with the same
// query: none for nearly all paths, at most four.
//
//   - encoded separators decoded, slashes merged, dot segments removed
//   - path parameters dropped, dot segments removed
//   - both, in either order: a server of one kind may stand in front of another
func Readings(path string) []string {
	found := spellingsIn(path)
	if found == 0 {
		return nil
	}
	path, query, hasQuery := strings.Cut(path, "?")
	separated := mergeSlashes(decodeSeparators(path))
	all := []string{RemoveDotSegments(separated)}
	if found&parameter != 0 {
		bare := dropParameters(path)
		all = append(all,
			RemoveDotSegments(bare),
			RemoveDotSegments(mergeSlashes(decodeSeparators(bare))),
			RemoveDotSegments(mergeSlashes(dropParameters(separated))))
	}
	var others []string
	for _, reading := range all {
		if reading == path {
			continue
		}
		if hasQuery {
			reading += "?" + query
		}
		if !slices.Contains(others, reading) {
			others = append(others, reading)
		}
	}
	return others
}

// HidesDotSegment reports whether path has a dot segment next to an encoded
// separator, as in /public/..%2Fprivate: servers that decode the separator first
// resolve it, the others take it for a name. It has no honest use.
func HidesDotSegment(path string) bool {
	if spellingsIn(path)&(encodedSlash|encodedBackslash) == 0 {
		return false
	}
	path, _, _ = strings.Cut(path, "?")
	for segment := range strings.SplitSeq(decodeSeparators(path), "/") {
		if dots(segment) > 0 {
			return true // those between plain slashes have been removed
		}
	}
	return false
}

// SpeaksFor reports whether the rule's pattern has all the spellings of path that
// servers read differently: then the origin has decided about just this path.
func (r Rule) SpeaksFor(path string) bool {
	found := spellingsIn(path)
	return found != 0 && spellingsIn(r.Pattern)&found == found
}

var separators = strings.NewReplacer("%2F", "/", "%2f", "/", "%5C", "/", "%5c", "/", `\`, "/")

func decodeSeparators(path string) string { return separators.Replace(path) }

// mergeSlashes makes one slash of each run of them.
func mergeSlashes(path string) string {
	if !strings.Contains(path, "//") {
		return path
	}
	merged := make([]byte, 0, len(path))
	for i := range len(path) {
		if path[i] != '/' || i == 0 || path[i-1] != '/' {
			merged = append(merged, path[i])
		}
	}
	return string(merged)
}

// dropParameters drops what follows a semicolon in every segment (RFC 3986, 3.3).
func dropParameters(path string) string {
	bare := make([]byte, 0, len(path))
	inParameter := false
	for i := range len(path) {
		switch path[i] {
		case '/':
			inParameter = false
		case ';':
			inParameter = true
		}
		if !inParameter {
			bare = append(bare, path[i])
		}
	}
	return string(bare)
}
