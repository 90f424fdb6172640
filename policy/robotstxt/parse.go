package robotstxt

import (
	"cmp"
	"slices"
	"strings"
)

// Parse reads a robots.txt. It never fails: a line that means nothing is passed
// over, and an HTML page is a file without rules. Lines that are neither User-agent,
// Allow nor Disallow are kept by name, see [Field].
//
// If limit is positive and data is longer, the rest is not read, nor is the line
// that the limit cuts in two. A caller that wants Truncated to be right must not
// cut data at the limit itself: one byte more is enough.
func Parse(data []byte, limit int) *File {
	text := decode(data, limit)
	p := parser{
		file:    &File{body: text.Body, text: text.Text, truncated: text.Truncated},
		byNames: map[string]int32{},
		nameAt:  map[string]uint32{},
		group:   list{section: notInGroup},
		above:   list{section: notInGroup},
	}
	for s := text.scan(); s.Next(); {
		switch s.Name {
		case userAgent:
			p.userAgent(s.Value, uint32(s.At))
		case allow, disallow:
			p.rule(&s)
		default:
			p.field(&s)
		}
	}
	p.closeGroup() // the last group may be empty: it allows everything
	return p.finish()
}

// A parser turns fields into the parts of a File.
//
// Groups are gathered in sections: all groups for the very same crawlers make one. A
// crawler that is named in groups with differing others has several sections, and its
// rules are the union of them. Merging them for each name instead would let a file of
// 500 KiB ask for gigabytes: ten thousand names above ten thousand rules, each name with
// a small group of its own besides.
type parser struct {
	file    *File
	byNames map[string]int32  // the section for a set of names, sorted and joined
	nameAt  map[string]uint32 // where the text has a name for the first time

	group list // of the group being read, which a rule ends
	above list // of the User-agent lines directly above, which any other field ends
}

// A list is the names of the crawlers that some User-agent lines are for.
type list struct {
	open    bool     // a further User-agent line would belong to it
	names   []string // in lower case
	section int32    // for these names; notSought before it is needed, notInGroup before the first line
}

const notSought = -2 // in list.section

// add adds the name of a User-agent line, and begins a new list if this one is not open.
func (l *list) add(name string) {
	if !l.open {
		*l = list{true, l.names[:0], notSought}
	}
	if name != "" {
		l.names = append(l.names, name)
	}
}

// userAgent adds a line to the group that is open, or opens one. Only Allow and Disallow
// lines close a group (RFC 9309, section 2.2.1, and its grammar).
func (p *parser) userAgent(value string, at uint32) {
	name := strings.ToLower(tokenName(value))
	if isEveryone(value) {
		name = everyone
	}
	if _, seen := p.nameAt[name]; !seen {
		p.nameAt[name] = at
	}
	p.group.add(name)
	p.above.add(name)
}

// sectionOf returns the section for the names of a list that is complete.
func (p *parser) sectionOf(l *list) int32 {
	if l.section != notSought {
		return l.section
	}
	f := p.file
	slices.Sort(l.names)
	key := strings.Join(slices.Compact(l.names), " ")
	i, ok := p.byNames[key]
	if !ok {
		i = int32(len(f.sections))
		p.byNames[key] = i
		s := section{}
		if i == 0 { // most files have one section, with most of their lines
			s.rules = make([]rule, 0, min(strings.Count(f.text, "\n"), 64))
		}
		f.sections = append(f.sections, s)
		for name := range strings.FieldsSeq(key) {
			at := p.nameAt[name]
			f.bindings = append(f.bindings, binding{name: name, section: i, at: at})
			if short := shortName(name); short != name && short != "" {
				f.bindings = append(f.bindings, binding{name: short, section: i, at: at, short: true})
			}
		}
	}
	l.section = i
	return i
}

// closeGroup ends the User-agent lines of a group, if they have not ended, and finds its section.
func (p *parser) closeGroup() {
	if p.group.open {
		p.group.open = false
		p.sectionOf(&p.group)
	}
}

// rule adds an Allow or Disallow line to the current group. Rules before the first
// User-agent line bind no crawler.
func (p *parser) rule(s *scanner) {
	p.closeGroup()
	p.above.open = false
	// An empty pattern is no rule, and a path never begins with anything but a slash.
	if p.group.section == notInGroup || s.Value == "" || s.Value[0] != '/' && s.Value[0] != '*' {
		return
	}
	here := &p.file.sections[p.group.section]
	pattern := NewPattern(s.Value)
	r := rule{
		pattern: pattern.code, at: uint32(s.At), n: uint32(len(s.Value)), line: uint32(s.Line), rank: uint32(pattern.octets) << 1,
	}
	if s.Name == allow {
		r.rank |= allows
	}
	here.has[r.rank&allows] = true
	here.rules = append(here.rules, r)
}

// field keeps a line that is neither User-agent, Allow nor Disallow. It does not close the current group, but it
// binds the names directly above it only: sites write each crawler, then its delay or its statement.
func (p *parser) field(s *scanner) {
	p.above.open = false
	if len(p.file.fields) >= maxFields && !isKept(s.Name) {
		return
	}
	p.file.fields = append(p.file.fields, field{s.Name, s.Value, int32(s.Line), p.sectionOf(&p.above)})
}

// finish sorts everything as a File keeps it, without much spare capacity.
func (p *parser) finish() *File {
	f := p.file
	f.sections = slices.Clone(f.sections)
	for i := range f.sections {
		s := &f.sections[i]
		slices.SortFunc(s.rules, func(a, b rule) int { return byRank(&a, &b) })
		if spare := cap(s.rules) - len(s.rules); spare > len(s.rules)/8 {
			s.rules = slices.Clone(s.rules)
		}
	}
	f.bindings = slices.Clone(chosen(f.bindings))
	slices.SortStableFunc(f.fields, func(a, b field) int { return compareFold(a.name, b.name) })
	f.fields = slices.Clone(f.fields)
	for i, name := range keptNames {
		f.kept[i] = f.findFields(name)
	}
	f.size = f.measure()
	return f
}

// chosen returns the bindings sorted by name, then by section, each once. A short name counts only if no line
// has the very name: the group for bot2 must not open what the one for bot closes.
func chosen(all []binding) []binding {
	slices.SortFunc(all, func(a, b binding) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.section, b.section))
	})
	exact := map[string]bool{}
	for _, b := range all {
		exact[b.name] = exact[b.name] || !b.short
	}
	all = slices.DeleteFunc(all, func(b binding) bool { return b.short && exact[b.name] })
	return slices.CompactFunc(all, func(a, b binding) bool { return a.name == b.name && a.section == b.section })
}
