package match

import "strings"

// The number of steps that a decision may take. A step is about one octet of the path or
// of a pattern that is compared, so the number depends on the file, the path and the
// product tokens only, and a decision is the same on every machine.
const (
	// QuickSteps take up to a millisecond. Decisions about files written by people take
	// some hundred steps.
	QuickSteps = 1 << 20

	// MaxSteps take up to some 20 milliseconds. TestHonestSteps shows how far below
	// large files stay that are not made to reach it.
	MaxSteps = 24 << 20
)

// Beyond QuickSteps a decision begins again with a table of the path. For all but hostile
// files the number of steps then depends on the path and on the file, not on their product.

// A Finder searches paths for the text between the wildcards of patterns, and counts its
// steps.
type Finder struct {
	Steps int         // that are left; negative: the search was given up, and its results are void
	table *placeTable // of the path; nil: the path itself is searched
}

// BuildIndex makes a table of a path if there are steps for it.
func (f *Finder) BuildIndex(path string) bool {
	if f.Steps -= tableSteps * len(path); f.Steps < 0 {
		return false
	}
	f.table = newPlaceTable(path)
	return true
}

// Indexed reports whether there is a table of the path.
func (f *Finder) Indexed() bool { return f.table != nil }

// MatchWild reports whether s begins as rest says, where rest is what follows the
// literal beginning of a pattern: nothing, or a text that begins with a wildcard. If
// there is a table, s is the end of its text.
//
// A star matches as little as the text behind it allows. Matching more is never needed:
// the rest of a pattern that matches at a later place also matches after the earlier one.
// So every octet of s is compared once, and the time is linear for any number of stars.
func (f *Finder) MatchWild(rest, s string) bool {
	if f.table == nil {
		f.Steps -= len(rest) + len(s) // at most
	} else {
		f.Steps -= 4
	}
	rest, anchored := strings.CutSuffix(rest, "$")
	if rest == "" {
		return !anchored || s == ""
	}
	for f.Steps >= 0 {
		segment, more, found := strings.Cut(rest[1:], "*")
		if !found && anchored {
			return strings.HasSuffix(s, segment)
		}
		var i, steps int
		if f.table == nil {
			i = strings.Index(s, segment)
		} else {
			i, steps = f.table.index(len(f.table.text)-len(s), segment)
		}
		f.Steps -= steps
		if !found || i < 0 {
			return i >= 0
		}
		s = s[i+len(segment):]
		rest = rest[len(rest)-len(more)-1:]
	}
	return false
}

// LiteralLen returns the length of the beginning of a pattern that has no wildcards.
func LiteralLen(pattern string) int {
	if i := strings.IndexByte(pattern, '*'); i >= 0 {
		return i
	}
	if n := len(pattern); n > 0 && pattern[n-1] == '$' {
		return n - 1
	}
	return len(pattern)
}
