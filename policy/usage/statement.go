package usage

import "slices"

// categories has the labels of Content-Usage and Content-Signal that name a category of ours. One
// table serves both, because sites mix them. Any other label is a category of its own, as stated.
var categories = map[string]string{
	"train-ai": "train-ai", // draft-ietf-aipref-vocab-08, 4.1
	"ai-train": "train-ai", // Content Signals
	"ai-input": "ai-input", // Content Signals
	"ai-use":   "ai-input", // draft-ietf-aipref-vocab-08, 4.2
	"search":   "search",   // both
	"tdm":      "tdm",      // draft-ietf-aipref-vocab-01 and earlier
}

// A value is what a statement says about a label.
type value uint8

const (
	unknown value = iota // neither: the label has another value
	yes
	no

	full // levels, from the most permissive
	reference
	immediate
)

// A statement is what one line or field says about labels, in the order of their first occurrence.
type statement struct {
	members []member
	index   map[string]int // into members, if there are more than fewMembers

	lists func(label string) bool // reports whether a label may be listed; others are left out. nil: all may
}

type member struct {
	label string
	value value
}

// fewMembers is how many members are found faster without a map.
const fewMembers = 8

// reset makes s an empty statement.
func (s *statement) reset() {
	s.members = s.members[:0]
	s.index = nil
}

// set makes v the value of a label. If the label has a value already, the result is what choose
// returns.
func (s *statement) set(label string, v value, choose func(first, second value) value) {
	if len(label) > maxLabel || s.lists != nil && !s.lists(label) {
		return // it is neither listed nor in categories
	}
	i, ok := s.index[label]
	if s.index == nil {
		i = slices.IndexFunc(s.members, func(m member) bool { return m.label == label })
		ok = i >= 0
	}
	if ok {
		s.members[i].value = choose(s.members[i].value, v)
		return
	}
	if s.members == nil {
		s.members = make([]member, 0, fewMembers)
	}
	s.members = append(s.members, member{label, v})
	switch n := len(s.members); {
	case s.index != nil:
		s.index[label] = n - 1
	case n > fewMembers:
		s.index = make(map[string]int, 2*n)
		for i, m := range s.members {
			s.index[m.label] = i
		}
	}
}
