package robotstxt

import (
	"cmp"
	"slices"
	"strings"
)

// An indexer brings the rules of a section into the order in which search finds
// them: by their literal beginnings, and by rank where these are the same.
//
// They are sorted by eight bytes at a time, as numbers: the rules of a site begin
// much alike, and to compare them as strings would look at the same again and again.
type indexer struct {
	file  *File
	rules []rule // as they come; they are moved only once, when their order is known

	items []indexItem // these are kept for the next section
	stack []openRun
	loads []uint8
}

type indexItem struct {
	word    uint64 // eight bytes of the literal beginning, zeros past its end
	literal uint32 // its length, which would take time to find again
	rule    uint32 // an index
}

// index sorts and links rules, and makes sieves where there are many with the same
// literal beginning.
func (x *indexer) index(rules []rule) {
	if len(rules) == 0 {
		return
	}
	x.rules = append(x.rules[:0], rules...)
	x.items = slices.Grow(x.items[:0], len(rules))
	for i := range rules {
		x.items = append(x.items, indexItem{literal: uint32(x.file.literalLen(&rules[i])), rule: uint32(i)})
	}
	x.sort(x.items, 0)
	for i := range rules {
		rules[i] = x.rules[x.items[i].rule]
	}
	x.link(rules)
	if len(rules) > linkMask {
		return
	}
	for start := 0; start < len(rules); {
		end := start + 1
		for end < len(rules) && rules[end].size&first == 0 {
			end++
		}
		if end-start >= sieveFrom {
			x.sift(rules, start, end)
		}
		start = end
	}
}

// sort sorts items, whose literal beginnings are the same up to depth.
func (x *indexer) sort(items []indexItem, depth int) {
	f := x.file
	for same := true; same; depth += 8 {
		for i := range items {
			item := &items[i]
			item.word = wordAt(f.pattern(&x.rules[item.rule])[:item.literal], depth)
			same = same && items[i].word == items[0].word
		}
		if same && items[0].word&0xFF == 0 { // the normal form has no NUL: they end here
			slices.SortFunc(items, func(a, b indexItem) int {
				return cmp.Compare(f.rank(&x.rules[a.rule]), f.rank(&x.rules[b.rule]))
			})
			return
		}
	}
	slices.SortFunc(items, func(a, b indexItem) int { return cmp.Compare(a.word, b.word) })
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].word == items[0].word {
			n++
		}
		if n > 1 {
			x.sort(items[:n], depth-8)
		}
		items = items[n:]
	}
}

func wordAt(s string, depth int) (word uint64) {
	if depth < len(s) {
		s = s[depth:]
		for i := range min(len(s), 8) {
			word |= uint64(s[i]) << (56 - 8*i)
		}
	}
	return word
}

// An openRun is a literal beginning, and where the rules that have it end.
type openRun struct {
	literal string
	end     uint32
}

// link makes every rule point up: at the end of those rules whose literal
// beginning is the longest proper prefix of its own.
func (x *indexer) link(rules []rule) {
	stack := x.stack[:0] // each is a prefix of the next, and perhaps of what comes
	for i := range rules {
		r := &rules[i]
		literal := x.file.literal(r)
		if top := len(stack) - 1; top >= 0 && stack[top].literal == literal {
			r.up = rules[i-1].up
			stack[top].end = uint32(i + 1)
			continue
		}
		for len(stack) > 0 && !strings.HasPrefix(literal, stack[len(stack)-1].literal) {
			stack = stack[:len(stack)-1]
		}
		r.size |= first
		if top := len(stack) - 1; top >= 0 {
			r.up = stack[top].end
		}
		stack = append(stack, openRun{literal, uint32(i + 1)})
	}
	x.stack = stack
}
