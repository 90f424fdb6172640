package robotstxt

import ()

// A Rule is one Allow or Disallow line.
type Rule struct {
	Allow   bool
	Line    int    // 1-based
	Pattern string // as written in the file
}

// String returns the rule as a line of a robots.txt, its key spelt right.
func (r Rule) String() string {
	if r.Allow {
		return allow + ": " + r.Pattern
	}
	return disallow + ": " + r.Pattern
}

// A rule is a Rule as a File keeps it, in 32 bytes: most of the memory that robots.txt
// files take is their text and their rules.
type rule struct {
	pattern string // in the code of package match; a part of File.text if it is written like that
	at, n   uint32 // the place and the length of the pattern as written, in File.text
	line    uint32
	rank    uint32 // twice the octets of the pattern, plus allows
}

const allows = 1 // in rule.rank

// beats reports whether r governs paths that both match: the rule with the most octets
// does, Allow before Disallow, then the first in the file (RFC 9309, section 2.2.2).
func (r *rule) beats(o *rule) bool { return byRank(r, o) < 0 }

// public returns r as it is written.
func (f *File) public(r *rule) Rule {
	return Rule{Allow: r.rank&allows != 0, Line: int(r.line), Pattern: f.written(r)}
}

// written returns the pattern of r as it is written.
func (f *File) written(r *rule) string { return f.text[r.at:][:r.n] }
