package robotstxt

import (
	"cmp"
	"slices"
	"strings"
)

// A rule is a Rule as a File keeps it: 16 bytes, about as much again as the line
// takes. Its pattern is in normal form.
type rule struct {
	at   uint32 // where the pattern stands in text; if odd, an index into File.odd
	size uint32 // length of the pattern, and flags
	line uint32
	up   uint32 // see link
}

// Flags in rule.size.
const (
	allows   = 1 << iota
	odd      // the pattern is not in text, or not in normal form there
	wild     // it has a star, or ends in $
	first    // no rule before it in the section has the same literal beginning
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
	p := f.pattern(r)
	if r.size&wild == 0 {
		return p
	}
	return p[:literalLen(p)]
}

func literalLen(pattern string) int {
	if i := strings.IndexByte(pattern, '*'); i >= 0 {
		return i
	}
	if n := len(pattern); n > 0 && pattern[n-1] == '$' {
		return n - 1
	}
	return len(pattern)
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

// index brings rules into the order in which search finds them: by their literal
// beginnings, and by rank where these are the same.
func (f *File) index(rules []rule) {
	slices.SortFunc(rules, func(a, b rule) int {
		return cmp.Or(
			strings.Compare(f.literal(&a), f.literal(&b)),
			cmp.Compare(f.rank(&a), f.rank(&b)))
	})
	f.link(rules)
}

// link makes every rule point up, at the last of those rules whose literal
// beginning is the longest proper prefix of its own. up is an index plus one.
func (f *File) link(rules []rule) {
	type open struct {
		literal string
		up      uint32
	}
	var stack []open // the literal beginnings that the current one may begin with
	for i := range rules {
		r := &rules[i]
		literal := f.literal(r)
		if n := len(stack); n > 0 && stack[n-1].literal == literal {
			r.up = rules[i-1].up
			stack[n-1].up = uint32(i + 1)
			continue
		}
		r.size |= first
		for len(stack) > 0 && !strings.HasPrefix(literal, stack[len(stack)-1].literal) {
			stack = stack[:len(stack)-1]
		}
		if n := len(stack); n > 0 {
			r.up = stack[n-1].up
		}
		stack = append(stack, open{literal, uint32(i + 1)})
	}
}

// A candidate is the best rule found so far.
type candidate struct {
	file *File
	rule *rule
	rank uint64
}

// search looks for a better candidate among rules.
//
// Of all literal beginnings, the last that does not sort after path shares with
// path whatever any of them does: those that path begins with are it or prefixes
// of it, on the chain that leads up from there.
func (c *candidate) search(rules []rule, path string) {
	f := c.file
	lo, hi := 0, len(rules)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if f.literal(&rules[mid]) <= path {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return
	}
	common := commonPrefix(f.literal(&rules[lo-1]), path)
	for i := lo; i > 0; {
		r := &rules[i-1]
		literal := len(f.literal(r))
		up := int(r.up)
		if literal <= common {
			c.try(rules[:i], literal, path)
		}
		i = up
	}
}

// try looks at the rules with the same literal beginning that end the slice, the
// best first.
func (c *candidate) try(rules []rule, literal int, path string) {
	for i := len(rules) - 1; i >= 0; i-- {
		r := &rules[i]
		rank := c.file.rank(r)
		if rank <= c.rank {
			return
		}
		if r.size&wild == 0 || matchWild(c.file.pattern(r)[literal:], path[literal:]) {
			c.rule, c.rank = r, rank
			return
		}
		if r.size&first != 0 {
			return
		}
	}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
