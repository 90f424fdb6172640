package robotstxt

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
	"robotsgate/policy/robotstxt/internal/syntax"
)

// compile reads the records of s into groups and rules.
func compile(f *File, s syntax.Scanner) {
	c := compiler{file: f, ids: map[string]uint32{}, bySet: map[string]uint32{}}
	// Room for a rule on every line, of which the shortest is "Allow:/".
	c.pending = make([]pendingRule, 0, min(strings.Count(f.text, "\n"), len(f.text)/8)+1)
	for s.Next() {
		switch s.Name {
		case syntax.UserAgent:
			c.userAgent(s.Value)
		case syntax.Allow, syntax.Disallow:
			c.rule(&s)
		default:
			c.record(&s)
		}
	}
	c.close() // the last group may be empty: it allows everything
	c.finish()
}

// A compiler turns records into the parts of a File.
//
// Groups are gathered in sections: all groups that are for the very same crawlers
// make one. A crawler named in groups of different company has several sections,
// and its rules are the union of them. To merge them for each name instead would
// let a file of 500 KiB ask for gigabytes: ten thousand names on top of ten
// thousand rules, each with a small group of its own besides.
type compiler struct {
	file *File

	ids   map[string]uint32 // lower-case name ("*" included) to its number
	bySet map[string]uint32 // a set of these numbers to the section that is for them

	// The group being read.
	began bool     // there has been a User-agent line
	open  bool     // more User-agent lines would belong to it
	names []uint32 // whom it is for
	here  uint32   // its section, once it is not open
	first int      // the first of records that stands in it

	records []record
	pending []pendingRule
	extra   []byte
}

// A pendingRule is a rule that has not been put next to the others of its section.
type pendingRule struct {
	slot uint32 // twice its section, plus one if it is for the second comparison
	rule rule
}

// userAgent adds to the group that is open, or opens one. Only Allow and Disallow
// lines close a group (RFC 9309, 2.2.1, and its grammar).
func (c *compiler) userAgent(value string) {
	if !c.open {
		c.began, c.open = true, true
		c.names = c.names[:0]
		c.first = len(c.records)
	}
	if syntax.IsEveryone(value) {
		c.names = append(c.names, c.id("*"))
		return
	}
	long, short := syntax.TokenNames(value)
	if long != "" {
		c.names = append(c.names, c.id(long))
	}
	if short != "" {
		c.names = append(c.names, c.id(short))
	}
}

// id numbers the names.
func (c *compiler) id(name string) uint32 {
	name = strings.ToLower(name)
	id, ok := c.ids[name]
	if !ok {
		id = uint32(len(c.ids))
		c.ids[name] = id
	}
	return id
}

// close ends the run of User-agent lines, and finds the section that is for them.
func (c *compiler) close() {
	if !c.open {
		return
	}
	c.open = false
	slices.Sort(c.names)
	c.names = slices.Compact(c.names)
	key := make([]byte, 0, 64)
	for _, id := range c.names {
		key = binary.BigEndian.AppendUint32(key, id)
	}
	here, ok := c.bySet[string(key)]
	if !ok {
		here = uint32(len(c.bySet))
		c.bySet[string(key)] = here
		c.file.sections = append(c.file.sections, section{})
	}
	c.here = here
	for i := range c.records[c.first:] {
		c.records[c.first+i].section = int32(here)
	}
}

// rule adds an Allow or Disallow line to the current group. What stands before
// the first User-agent line binds nobody.
func (c *compiler) rule(s *syntax.Scanner) {
	if !c.began {
		return
	}
	c.close()
	// An empty pattern is no rule, and a path never begins with anything but a slash.
	if s.Value == "" || s.Value[0] != '/' && s.Value[0] != '*' {
		return
	}
	r := rule{line: uint32(s.Line)}
	if s.Name == syntax.Allow {
		r.size |= allows
		c.file.sections[c.here].hasAllow = true
	} else {
		c.file.sections[c.here].hasDisallow = true
	}
	pattern, octets := s.Value, len(s.Value)
	if match.Normal(pattern) == pattern {
		r.at = uint32(s.At)
		r.size |= uint32(len(pattern)) << flagBits
	} else {
		pattern = match.Normal(pattern)
		// A $ is encoded as it is in paths, but counts as the one octet that it is.
		octets = len(pattern) - 2*strings.Count(strings.TrimSuffix(s.Value, "$"), "$")
		r.at = c.odd(s, pattern, octets)
		r.size |= odd
	}
	c.add(r, pattern, 2*c.here)
	if match.ComparesQuery(pattern) {
		r.at = c.odd(s, match.EncodeQuery(pattern), octets)
		r.size = r.size&allows | odd
		c.add(r, match.EncodeQuery(pattern), 2*c.here+1)
	}
}

func (c *compiler) add(r rule, pattern string, slot uint32) {
	if match.LiteralLen(pattern) < len(pattern) {
		r.size |= wild
	}
	c.pending = append(c.pending, pendingRule{slot, r})
}

func (c *compiler) odd(s *syntax.Scanner, pattern string, octets int) uint32 {
	at := len(c.extra)
	c.extra = append(c.extra, pattern...)
	c.file.odd = append(c.file.odd, oddRule{
		at:      uint32(at),
		size:    uint32(len(pattern)),
		rawAt:   uint32(s.At),
		rawSize: uint32(len(s.Value)),
		octets:  uint32(octets),
	})
	return uint32(len(c.file.odd) - 1)
}

// record keeps a line that is neither User-agent, Allow nor Disallow. It does not close
// the current group.
func (c *compiler) record(s *syntax.Scanner) {
	if len(c.records) == maxRecords {
		return
	}
	section := int32(notInGroup)
	if c.began {
		section = int32(c.here) // if the group is open, close corrects this
	}
	c.records = append(c.records, record{s.Name, s.Value, int32(s.Line), section})
}

// finish lays everything out as a File keeps it.
func (c *compiler) finish() {
	c.finishNames()
	c.finishRules()
	sortRecords(c.records)
	c.file.records = slices.Clone(c.records)
}

// finishRules puts the rules of each section together and indexes them. A section
// has two slots, since those for the second comparison are searched separately.
func (c *compiler) finishRules() {
	f := c.file
	ends := make([]uint32, 2*len(f.sections)+1)
	for _, p := range c.pending {
		ends[p.slot+1]++
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	for i := range f.sections {
		s := &f.sections[i]
		s.lo, s.query, s.hi = ends[2*i], ends[2*i+1], ends[2*i+2]
	}
	f.rules = make([]rule, len(c.pending))
	next := ends // where the next rule of a slot goes
	for _, p := range c.pending {
		f.rules[next[p.slot]] = p.rule
		next[p.slot]++
	}
	x := indexer{file: f}
	for i := range f.sections {
		x.index(f.sections[i].rules(f))
		x.index(f.sections[i].queryRules(f))
	}
	f.sieves, f.sifted = slices.Clone(f.sieves), slices.Clone(f.sifted)
}

// finishNames sorts the names and notes the sections of each.
func (c *compiler) finishNames() {
	f := c.file
	sections := make([][]uint32, len(c.ids))
	for set, n := range c.bySet {
		for ids := []byte(set); len(ids) > 0; ids = ids[4:] {
			id := binary.BigEndian.Uint32(ids)
			sections[id] = append(sections[id], n)
		}
	}
	var names strings.Builder
	for _, n := range slices.Sorted(maps.Keys(c.ids)) {
		list := sections[c.ids[n]]
		r := ref(list[0])
		if len(list) > 1 {
			slices.Sort(list)
			r = several | ref(len(f.lists))
			f.lists = append(append(f.lists, uint32(len(list))), list...)
		}
		if n == "*" {
			f.star = r
			continue
		}
		names.WriteString(n)
		f.names = append(f.names, name{uint32(names.Len()), r})
	}
	for i := range f.odd {
		f.odd[i].at += uint32(names.Len())
	}
	f.extra = names.String() + string(c.extra)
	f.lists, f.names = slices.Clone(f.lists), slices.Clone(f.names)
	f.odd = slices.Clone(f.odd)
	if len(f.sections) > len(f.only) {
		f.sections = slices.Clone(f.sections)
	} else {
		f.sections = f.only[:copy(f.only[:], f.sections)]
	}
}
