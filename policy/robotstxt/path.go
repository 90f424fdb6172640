package robotstxt

import "strings"

// maxSteps is the number of steps that a decision may take, some 20 milliseconds. A step is about one
// octet of the path or of a pattern that is compared, so the number depends on the file, the path and
// the product tokens only, and a decision is the same on every machine. Decisions about files written by
// people take some hundred steps.
const maxSteps = 16 << 20

// A codedPath is the path and query of a URL, in code.
type codedPath struct {
	code string
	mark int // where in code the question mark is that begins the query; len(code) if there is none
}

// newPath returns the codedPath of the path and query of a URL. Without a path a URL asks for "/".
func newPath(path string) codedPath {
	if path == "" {
		path = "/"
	}
	mark := strings.IndexByte(path, '?')
	if mark < 0 {
		mark = len(path)
	}
	if isCode(path) {
		return codedPath{path, mark}
	}
	var buf [256]byte // most paths fit, and need one allocation then
	code := appendCode(buf[:0], path[:mark], pathOnly+always, 0)
	at := len(code)
	return codedPath{string(appendCode(code, path[mark:], always+queryOnly, 0)), at}
}

// IsRobots reports whether a path is /robots.txt, in whatever spelling.
func IsRobots(path string) bool { return newPath(path).IsRobots() }

// IsRobots reports whether the path is /robots.txt, without a query.
func (p codedPath) IsRobots() bool { return p.code == "/robots.txt" }

// Matches reports whether a pattern, in code, matches the path. It subtracts from steps what it takes. If
// they become negative, the result is void.
//
// A star matches as little as the text behind it allows. Matching more is never needed: the rest of a
// pattern that matches at a later place also matches after the earlier one. So every octet is compared
// once, and the time is linear for any number of stars.
func (p codedPath) Matches(pattern string, steps *int) bool {
	same := 0
	for same < min(len(pattern), len(p.code)) && pattern[same] == p.code[same] {
		same++
	}
	*steps -= 1 + same
	if same < len(pattern) && pattern[same] > byte(len(exceptions)) && pattern[same] != '*' && pattern[same] != '$' {
		return false // most patterns
	}
	pattern, anchored := strings.CutSuffix(pattern, "$")
	text, rest, wild := strings.Cut(pattern, "*")
	*steps -= 1 + len(text)
	if !p.has(text, 0) {
		return false
	}
	at := len(text)
	for wild && *steps >= 0 {
		text, rest, wild = strings.Cut(rest, "*")
		if !wild && anchored {
			*steps -= 1 + len(text)
			return len(p.code)-len(text) >= at && p.has(text, len(p.code)-len(text))
		}
		next := p.index(text, at)
		*steps -= 1 + len(text)
		if next < 0 {
			*steps -= len(p.code) - at
			return false
		}
		*steps -= next - at
		at = next + len(text)
	}
	return !anchored || at == len(p.code)
}

// has reports whether the path has a text without wildcards at a place.
func (p codedPath) has(text string, at int) bool {
	if hasEscapes(text) {
		n := min(max(p.mark+1-at, 0), len(text)) // of these octets lie in the path
		text = inPath.Replace(text[:n]) + inQuery.Replace(text[n:])
	}
	return strings.HasPrefix(p.code[at:], text)
}

// index returns the first place of a text without wildcards in the path, from a place on; -1 if there is none.
func (p codedPath) index(text string, from int) int {
	if hasEscapes(text) && from <= p.mark {
		if mark := p.mark - strings.IndexByte(text, '?'); mark > p.mark { // the text has none, and lies in the path or in the query
			if i := strings.Index(p.code[from:p.mark], inPath.Replace(text)); i >= 0 {
				return from + i
			}
		} else if mark >= from && p.has(text, mark) {
			return mark
		}
		from = min(p.mark+1, len(p.code))
	}
	if hasEscapes(text) {
		text = inQuery.Replace(text)
	}
	if i := strings.Index(p.code[from:], text); i >= 0 {
		return from + i
	}
	return -1
}
