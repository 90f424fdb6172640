package robotstxt

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// indexedFrom is how many rules make an index worth its time. Most files have fewer.
const indexedFrom = 128

// prefilterFrom is how many rules of an index make a prefilter worth its memory.
const prefilterFrom = 32

// indexRules returns rules in an order in which the few that may match a path are found
// quickly: by their literal beginnings, and by rank where these are the same.
//
// Rules with the same literal beginning make a run. Field up of each rule of a run is
// where the run ends whose literal beginning is the longest proper prefix of its own; 0
// if there is none. All rules that may match a path are in the run that [lastRun] finds,
// or on the way up from it. Few rules stay as they are.
func (f *File) indexRules(unsorted []rule) []rule {
	rules := unsorted
	if spare := cap(rules) - len(rules); spare > len(rules)/8 {
		rules = slices.Clone(rules)
	}
	if len(rules) < indexedFrom {
		return rules
	}
	slices.SortFunc(rules, func(a, b rule) int {
		return cmp.Or(strings.Compare(a.literal(), b.literal()), cmp.Compare(a.rank, b.rank), cmp.Compare(b.line, a.line))
	})
	var above []int // ends of runs, each literal beginning a prefix of the next
	for start := 0; start < len(rules); {
		literal := rules[start].literal()
		for len(above) > 0 && !strings.HasPrefix(literal, rules[above[len(above)-1]-1].literal()) {
			above = above[:len(above)-1]
		}
		up := 0
		if len(above) > 0 {
			up = above[len(above)-1]
		}
		end := start
		for ; end < len(rules) && rules[end].literal() == literal; end++ {
			rules[end].up = int32(up)
		}
		if end-start >= prefilterFrom {
			if f.prefilters == nil {
				f.prefilters = map[*rule]*prefilter{}
			}
			f.prefilters[&rules[end-1]] = newPrefilter(rules[start:end])
		}
		above = append(above, end)
		start = end
	}
	return rules
}

// lastRun returns where the run ends that has the last literal beginning which does not
// sort after path. It shares with path whatever any literal beginning does, so the
// ones that path begins with are its own and its prefixes.
func lastRun(rules []rule, path string) int {
	return sort.Search(len(rules), func(i int) bool { return rules[i].literal() > path })
}
