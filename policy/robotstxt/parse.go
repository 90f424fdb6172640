package robotstxt

import (
	"cmp"
	"slices"
	"strings"

	"robotsgate/policy/robotstxt/internal/syntax"
)

// Parse reads a robots.txt. It never fails: a line that means nothing is passed
// over, and an HTML page is a file without rules. Lines that are neither User-agent,
// Allow nor Disallow are kept by name, see [Record].
//
// If limit is positive and data is longer, the rest is not read, nor is the line
// that the limit cuts in two. A caller that wants Truncated to be right must not
// cut data at the limit itself: one byte more is enough.
func Parse(data []byte, limit int) *File {
	text := syntax.Decode(data, limit)
	p := parser{
		file:    &File{body: text.Body, text: text.Text, truncated: text.Truncated},
		byNames: map[string]int32{},
		nameAt:  map[string]uint32{},
		here:    notInGroup,
	}
	for s := text.Scan(); s.Next(); {
		switch s.Name {
		case syntax.UserAgent:
			p.userAgent(s.Value, uint32(s.At))
		case syntax.Allow, syntax.Disallow:
			p.rule(&s)
		default:
			p.record(&s)
		}
	}
	p.closeNames() // the last group may be empty: it allows everything
	return p.finish()
}

// A parser turns records into the parts of a File.
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

	// The group being read.
	open  bool     // further User-agent lines would belong to it
	names []string // of the crawlers that it is for, in lower case
	here  int32    // its section, once it is not open; notInGroup before the first
	first int      // the first of File.records that stands in it
}

// userAgent adds to the group that is open, or opens one. Only Allow and Disallow
// lines close a group (RFC 9309, section 2.2.1, and its grammar).
func (p *parser) userAgent(value string, at uint32) {
	if !p.open {
		p.open = true
		p.names = p.names[:0]
		p.first = len(p.file.records)
	}
	if syntax.IsEveryone(value) {
		p.name(everyone, at)
		return
	}
	long, short := syntax.TokenNames(value)
	for _, name := range []string{long, short} {
		if name != "" {
			p.name(strings.ToLower(name), at)
		}
	}
}

// name adds a name to the open group.
func (p *parser) name(name string, at uint32) {
	p.names = append(p.names, name)
	if _, seen := p.nameAt[name]; !seen {
		p.nameAt[name] = at
	}
}

// closeNames ends the run of User-agent lines, and finds the section for their names.
func (p *parser) closeNames() {
	if !p.open {
		return
	}
	f := p.file
	p.open = false
	slices.Sort(p.names)
	p.names = slices.Compact(p.names)
	key := strings.Join(p.names, " ")
	here, ok := p.byNames[key]
	if !ok {
		here = int32(len(f.sections))
		p.byNames[key] = here
		f.sections = append(f.sections, section{})
		for name := range strings.FieldsSeq(key) {
			f.bindings = append(f.bindings, binding{name, here, p.nameAt[name]})
		}
	}
	p.here = here
	for i := range f.records[p.first:] {
		f.records[p.first+i].section = here
	}
}

// rule adds an Allow or Disallow line to the current group. Rules before the first
// User-agent line bind no crawler.
func (p *parser) rule(s *syntax.Scanner) {
	p.closeNames()
	// An empty pattern is no rule, and a path never begins with anything but a slash.
	if p.here == notInGroup || s.Value == "" || s.Value[0] != '/' && s.Value[0] != '*' {
		return
	}
	section := &p.file.sections[p.here]
	pattern := NewPattern(s.Value)
	r := rule{pattern: pattern.normal, at: uint32(s.At), line: uint32(s.Line), rank: uint32(pattern.octets) << 1}
	if s.Name == syntax.Allow {
		r.rank |= allows
	}
	section.has[r.rank&allows] = true
	section.rules = append(section.rules, r)
	if pattern.query != "" {
		r.pattern = pattern.query
		section.queryRules = append(section.queryRules, r)
	}
}

// record keeps a line that is neither User-agent, Allow nor Disallow. It does not close
// the current group.
func (p *parser) record(s *syntax.Scanner) {
	if len(p.file.records) >= maxRecords && !isKept(s.Name) {
		return
	}
	// If the group is open, closeNames corrects the section.
	p.file.records = append(p.file.records, record{s.Name, s.Value, int32(s.Line), p.here})
}

// finish sorts everything as a File keeps it, without spare capacity.
func (p *parser) finish() *File {
	f := p.file
	f.sections = slices.Clone(f.sections)
	for i := range f.sections {
		s := &f.sections[i]
		s.rules, s.queryRules = f.indexRules(s.rules), f.indexRules(s.queryRules)
	}
	slices.SortFunc(f.bindings, func(a, b binding) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.section, b.section))
	})
	f.bindings = slices.Clone(f.bindings)
	slices.SortStableFunc(f.records, func(a, b record) int { return compareFold(a.name, b.name) })
	f.records = slices.Clone(f.records)
	for i, name := range keptNames {
		f.kept[i] = f.findRecords(name)
	}
	f.size = f.measure()
	return f
}
