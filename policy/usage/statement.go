package usage

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

// A statement is what one line or field says about labels.
type statement struct {
	labels []string // in the order of their first occurrence
	values map[string]value
}

// reset makes s an empty statement.
func (s *statement) reset() {
	s.labels = s.labels[:0]
	if s.values == nil {
		s.values = map[string]value{}
	}
	clear(s.values)
}

// set makes v the value of a label. If the label has a value already, the result is what choose
// returns.
func (s *statement) set(label string, v value, choose func(first, second value) value) {
	if len(label) > maxLabel {
		return
	}
	if before, ok := s.values[label]; ok {
		v = choose(before, v)
	} else {
		s.labels = append(s.labels, label)
	}
	s.values[label] = v
}
