package robotstxt

import "iter"

// Rules returns those of the group, in no particular order.
func (g Group) Rules() iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for s := range g.sections() {
			rules := s.rules(g.file)
			for j := range rules {
				if !yield(g.file.ruleAsWritten(&rules[j])) {
					return
				}
			}
		}
	}
}

// Names returns the names that have a group, in lower case and ascending, without "*".
func (f *File) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range f.names {
			if !yield(f.name(i)) {
				return
			}
		}
	}
}
