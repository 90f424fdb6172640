package audit

import (
	"fmt"

	"robotsgate/internal/console"
)

// A sumReport summarises the entries.
type sumReport struct {
	Summary
	s       console.Streams
	invalid invalidLines
}

func (t *sumReport) Line(l *Line) {
	t.Summary.Line(l)
	t.invalid.add(l)
}

// invalidLines has a warning for each of the first lines that are no entries.
type invalidLines []string

func (i *invalidLines) add(l *Line) {
	const most = 20
	if l.Record == nil && len(*i) < most {
		*i = append(*i, fmt.Sprintf("%s: %v", l.At(), l.Err))
	}
}

func (i invalidLines) warn(s console.Streams) {
	for _, text := range i {
		s.Warn("%s", text)
	}
}

func (t *sumReport) result() (string, any, bool) {
	t.invalid.warn(t.s)
	return "summary", &t.Summary, false
}
