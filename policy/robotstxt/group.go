package robotstxt

import (
	"iter"
	"slices"
)

// A section is the rules of all groups that are for the same crawlers.
type section struct {
	lo, query, hi uint32 // File.rules[lo:query], and those for the second comparison
	hasAllow      bool
	hasDisallow   bool
}

func (s *section) rules(f *File) []rule      { return f.rules[s.lo:s.query] }
func (s *section) queryRules(f *File) []rule { return f.rules[s.query:s.hi] }

// A ref leads from a name to its sections: it is the index of the one that most names
// have, or with a flag a place in File.lists, where their number stands before them.
type ref uint32

const (
	several ref = 1 << 31
	none    ref = 1<<32 - 1
)

// A name is one that a User-agent line gives, in lower case.
type name struct {
	end uint32 // in File.extra; it begins where the one before ends
	ref ref
}

// name returns the i-th name.
func (f *File) name(i int) string {
	start := uint32(0)
	if i > 0 {
		start = f.names[i-1].end
	}
	return f.extra[start:f.names[i].end]
}

// A Group is the set of rules that one crawler must obey. The zero Group has none.
type Group struct {
	file  *File
	ref   ref
	named int32 // 1 + the index of its name; 0: "*"
	token string
}

// sections returns the group's sections. The zero Group has none.
func (g Group) sections() iter.Seq[*section] {
	return func(yield func(*section) bool) {
		switch f := g.file; {
		case f == nil:
		case g.ref&several == 0:
			yield(&f.sections[g.ref])
		default:
			list := f.lists[g.ref&^several:]
			for _, i := range list[1:][:list[0]] {
				if !yield(&f.sections[i]) {
					return
				}
			}
		}
	}
}

// hasSection reports whether the group has section i.
func (g Group) hasSection(i int32) bool {
	if g.ref&several == 0 {
		return i == int32(g.ref)
	}
	list := g.file.lists[g.ref&^several:]
	_, ok := slices.BinarySearch(list[1:][:list[0]], uint32(i))
	return ok && i != notInGroup
}

// Group returns the group of the first of the product tokens that has one, else
// the group of "*", else the zero Group. Tokens are compared whole and ignoring
// case (RFC 9309, 2.2.1); what is no valid token has no group.
func (f *File) Group(tokens ...string) Group {
	for _, token := range tokens {
		if i, ok := f.find(token); ok {
			return Group{file: f, ref: f.names[i].ref, named: int32(i + 1), token: token}
		}
	}
	if f.star == none {
		return Group{}
	}
	return Group{file: f, ref: f.star}
}

// find looks a token up among the names.
func (f *File) find(token string) (i int, ok bool) {
	lo, hi := 0, len(f.names)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := compareFold(f.name(mid), token); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}

// OK reports whether there is a group at all.
func (g Group) OK() bool { return g.file != nil }

// Name returns the group's name in lower case, or "*", or "" if there is none.
func (g Group) Name() string {
	switch {
	case g.file == nil:
		return ""
	case g.named == 0:
		return "*"
	}
	return g.file.name(int(g.named) - 1)
}

// Token returns the product token that selected the group, as it was passed in.
// It is empty for "*".
func (g Group) Token() string { return g.token }

// HasAllow reports whether the group has an Allow rule that can match something.
func (g Group) HasAllow() bool {
	for s := range g.sections() {
		if s.hasAllow {
			return true
		}
	}
	return false
}

// HasDisallow reports whether the group has a Disallow rule that can match something.
func (g Group) HasDisallow() bool {
	for s := range g.sections() {
		if s.hasDisallow {
			return true
		}
	}
	return false
}
