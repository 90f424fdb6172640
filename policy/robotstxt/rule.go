package robotstxt

import (
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
	"robotsgate/policy/robotstxt/internal/syntax"
)

// A Rule is one Allow or Disallow line.
type Rule struct {
	Allow   bool
	Line    int    // 1-based
	Pattern string // as written in the file
}

// String returns the rule as a line of a robots.txt, its key spelt right.
func (r Rule) String() string {
	if r.Allow {
		return syntax.Allow + ": " + r.Pattern
	}
	return syntax.Disallow + ": " + r.Pattern
}

// A rule is a Rule as a File keeps it, in 32 bytes: most of the memory that robots.txt
// files take is their text and their rules.
type rule struct {
	pattern string // in normal form; a part of File.text if it is written like that
	at      uint32 // where the pattern as written begins in File.text
	line    uint32
	rank    uint32 // twice the octets of the pattern, plus allows
	up      int32  // see index
}

const allows = 1 // in rule.rank

// beats reports whether r governs paths that both match: the rule with the most octets
// does, Allow before Disallow, then the first in the file (RFC 9309, section 2.2.2).
func (r *rule) beats(o *rule) bool {
	return r.rank > o.rank || r.rank == o.rank && r.line < o.line
}

// literal returns the beginning of the pattern that has no wildcards.
func (r *rule) literal() string { return r.pattern[:match.LiteralLen(r.pattern)] }

// public returns r as it is written.
func (f *File) public(r *rule) Rule {
	pattern := r.pattern
	if !r.asWritten(f.text) {
		pattern = f.text[r.at:]
		if end := strings.IndexAny(pattern, "#\r\n\x00"); end >= 0 {
			pattern = pattern[:end]
		}
		pattern = strings.TrimRight(pattern, syntax.Space)
	}
	return Rule{Allow: r.rank&allows != 0, Line: int(r.line), Pattern: pattern}
}

// asWritten reports whether the pattern was in normal form as written. If not, the two
// differ before the shorter of them ends.
func (r *rule) asWritten(text string) bool {
	return strings.HasPrefix(text[r.at:], r.pattern)
}
