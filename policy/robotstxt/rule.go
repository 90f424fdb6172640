package robotstxt

import "robotsgate/policy/robotstxt/internal/match"

// A rule is a Rule as a File keeps it: 16 bytes, about as much again as the line
// takes. Its pattern is in normal form.
type rule struct {
	at   uint32 // where the pattern stands in text; if odd, an index into File.odd
	size uint32 // length of the pattern, and flags
	line uint32
	up   uint32 // see link, and sieve
}

// Flags in rule.size.
const (
	allows   = 1 << iota
	odd      // the pattern is not in text, or not in normal form there
	wild     // it has a star, or ends in $
	first    // no rule before it in the section has the same literal beginning
	sifted   // those before it are found by way of File.sieves[up]
	flagBits = iota
)

// An oddRule is what a rule cannot hold if its pattern is not as written.
type oddRule struct {
	at, size       uint32 // of the pattern in File.extra
	rawAt, rawSize uint32 // of the pattern in File.text
	octets         uint32
}

func (f *File) pattern(r *rule) string {
	if r.size&odd != 0 {
		o := &f.odd[r.at]
		return f.extra[o.at:][:o.size]
	}
	return f.text[r.at:][:r.size>>flagBits]
}

// literal returns the beginning of the pattern that has no wildcards.
func (f *File) literal(r *rule) string {
	return f.pattern(r)[:f.literalLen(r)]
}

func (f *File) literalLen(r *rule) int {
	p := f.pattern(r)
	if r.size&wild == 0 {
		return len(p)
	}
	return match.LiteralLen(p)
}

// rank orders rules that match the same path: the one with the most octets
// governs it, Allow before Disallow, then the first in the file (RFC 9309, 2.2.2).
func (f *File) rank(r *rule) uint64 {
	octets := r.size >> flagBits
	if r.size&odd != 0 {
		octets = f.odd[r.at].octets
	}
	return uint64(octets)<<33 | uint64(r.size&allows)<<32 | uint64(^r.line)
}

func (f *File) ruleAsWritten(r *rule) Rule {
	pattern := ""
	if r.size&odd != 0 {
		o := &f.odd[r.at]
		pattern = f.text[o.rawAt:][:o.rawSize]
	} else {
		pattern = f.pattern(r)
	}
	return Rule{Allow: r.size&allows != 0, Line: int(r.line), Pattern: pattern}
}
