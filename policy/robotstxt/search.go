package robotstxt

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
		r := &rules[mid]
		// Most patterns are told apart from path before their first wildcard.
		if p := f.pattern(r); p <= path || r.size&wild != 0 && p[:literalLen(p)] <= path {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return
	}
	common := commonPrefix(f.literal(&rules[lo-1]), path)
	for end := lo; end > 0; {
		last := &rules[end-1]
		literal := f.literalLen(last)
		matches := literal <= common
		if last.size&sifted != 0 {
			v := &f.sieves[last.up]
			if matches {
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
	for i := len(rules) - 1; i >= 0; i-- {
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
	if rank <= c.rank || r.size&wild != 0 && !matchWild(c.file.pattern(r)[literal:], path[literal:]) {
		return false
	}
	c.rule, c.rank = r, rank
	return true
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
