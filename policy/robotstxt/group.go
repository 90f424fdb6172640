package robotstxt

import (
	"iter"
	"slices"
)

// everyone is the name of the group for all crawlers that have none of their own.
const everyone = "*"

// A section is the rules of all groups that are for the same crawlers. One for the crawlers that a
// field such as Crawl-delay is for may have none.
type section struct {
	rules []rule  // the best first
	has   [2]bool // Disallow rules, Allow rules
}

// A binding says that a section is for the crawlers with a name, which is in lower case.
type binding struct {
	name    string
	section int32
	at      uint32 // where the text has the name for the first time
	short   bool   // the line has a longer name, which begins with this one and a digit
}

// A Group is the set of rules that one crawler must obey. The zero Group has none.
type Group struct {
	file       *File
	start, end int32 // File.bindings[start:end], which have the same name
	token      string
}

// Group returns the group of the first of the product tokens that has one, else
// the group of "*", else the zero Group. Tokens are compared whole and ignoring
// case (RFC 9309, section 2.2.1); a token that is not valid has no group.
func (f *File) Group(tokens ...string) Group {
	for _, token := range tokens {
		if g := f.named(token); g.OK() && token != everyone {
			g.token = token
			return g
		}
	}
	return f.named(everyone)
}

// named returns the group with a name, in any case; the zero Group if there is none.
func (f *File) named(name string) Group {
	compare := func(b binding, name string) int { return compareFold(b.name, name) }
	start, ok := slices.BinarySearchFunc(f.bindings, name, compare)
	if !ok {
		return Group{}
	}
	end := start + 1
	for end < len(f.bindings) && f.bindings[end].name == f.bindings[start].name {
		end++
	}
	return Group{file: f, start: int32(start), end: int32(end)}
}

// OK reports whether there is a group at all.
func (g Group) OK() bool { return g.file != nil }

// Name returns the group's name in lower case, or "*", or "" if there is none.
func (g Group) Name() string {
	if !g.OK() {
		return ""
	}
	return g.file.bindings[g.start].name
}

// Written returns the group's name as the file writes it the first time, or "" if there is none.
func (g Group) Written() string {
	if !g.OK() {
		return ""
	}
	b := g.file.bindings[g.start]
	return g.file.text[b.at:][:len(b.name)]
}

// Token returns the product token that selected the group, as it was passed in.
// It is empty for "*".
func (g Group) Token() string { return g.token }

// HasAllow reports whether the group has an Allow rule that can match something.
func (g Group) HasAllow() bool { return g.has(allows) }

// HasDisallow reports whether the group has a Disallow rule that can match something.
func (g Group) HasDisallow() bool { return g.has(0) }

func (g Group) has(kind int) bool {
	for s := range g.sections() {
		if s.has[kind] {
			return true
		}
	}
	return false
}

// bindings returns what leads to the group's sections.
func (g Group) bindings() []binding {
	if !g.OK() {
		return nil
	}
	return g.file.bindings[g.start:g.end]
}

// sections returns the group's sections. The zero Group has none.
func (g Group) sections() iter.Seq[*section] {
	return func(yield func(*section) bool) {
		for _, b := range g.bindings() {
			if !yield(&g.file.sections[b.section]) {
				return
			}
		}
	}
}

// hasSection reports whether section i is one of the group's.
func (g Group) hasSection(i int32) bool {
	_, ok := slices.BinarySearchFunc(g.bindings(), i, func(b binding, i int32) int { return int(b.section - i) })
	return ok
}
