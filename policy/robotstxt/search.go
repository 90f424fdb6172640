package robotstxt

import (
	"robotsgate/policy/robotstxt/internal/match"
)

// A candidate is the best rule found so far.
type candidate struct {
	match.Finder
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
	before, after := 0, 0 // octets that path shares with rules[lo-1] and rules[hi]
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		pattern := f.pattern(&rules[mid])
		n := min(before, after)
		for n < len(pattern) && n < len(path) && pattern[n] == path[n] {
			n++
		}
		// A wildcard ends the literal beginning: in normal form the path has none.
		if n == len(pattern) || pattern[n] == '*' || pattern[n] == '$' || n < len(path) && pattern[n] < path[n] {
			lo, before = mid+1, n
		} else {
			hi, after = mid, n
		}
	}
	common := before
	c.Steps -= 16 + common
	for end := lo; end > 0 && c.Steps >= 0; {
		last := &rules[end-1]
		literal := f.literalLen(last)
		c.Steps -= 1 + literal
		matches := literal <= common
		if last.size&sifted != 0 {
			v := &f.sieves[last.up]
			if matches && c.Indexed() {
				c.try(rules[:end], literal, path)
			} else if matches {
				c.consider(last, literal, path)
				c.sift(v, rules, literal, path)
			}
			end = int(v.parent)
			continue
		}
		if matches {
			c.try(rules[:end], literal, path)
		}
		end = int(last.up)
	}
}

// try looks at the rules with the same literal beginning that end the slice, the
// best first.
func (c *candidate) try(rules []rule, literal int, path string) {
	for i := len(rules) - 1; i >= 0 && c.Steps >= 0; i-- {
		r := &rules[i]
		if c.file.rank(r) <= c.rank || c.consider(r, literal, path) || r.size&first != 0 {
			return
		}
	}
}

// consider makes r the candidate if it matches and is better, and reports whether
// it is so. The literal beginning is known to match.
func (c *candidate) consider(r *rule, literal int, path string) bool {
	rank := c.file.rank(r)
	if rank <= c.rank || r.size&wild != 0 && !c.MatchWild(c.file.pattern(r)[literal:], path[literal:]) {
		return false
	}
	c.rule, c.rank = r, rank
	return true
}
