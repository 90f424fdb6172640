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
