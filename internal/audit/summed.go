package audit

import (
	"fmt"
	"slices"
	"time"

	"robotsgate/internal/console"
)

// A sumReport summarises the entries.
type sumReport struct {
	Summary
	Bars     string // on a terminal: the requests by hour
	hours    hours
	terminal bool // standard output is one
	s        console.Streams
	invalid  invalidLines
}

func (t *sumReport) Line(l *Line) {
	t.Summary.Line(l)
	if l.Record != nil {
		t.hours.add(l.Record.Time)
	}
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

func (t *sumReport) result() (template string, failed bool) {
	t.invalid.warn(t.s)
	if t.terminal {
		t.Bars = t.hours.bars()
	}
	return "summary", false
}

// hours counts the requests of the last hours of a log.
type hours struct {
	last   int64   // hour since 1970
	counts [72]int // a row of bars fits a terminal
}

func (h *hours) add(t time.Time) {
	hour := t.Unix() / 3600
	if n := min(hour-h.last, int64(len(h.counts))); n > 0 {
		copy(h.counts[:], h.counts[n:])
		clear(h.counts[len(h.counts)-int(n):])
		h.last = hour
	}
	if i := int64(len(h.counts)) - 1 - (h.last - hour); i >= 0 {
		h.counts[i]++
	}
}

// bars returns a row of bars, one for each hour, with the first and the last hour; "" if there is only one.
func (h *hours) bars() string {
	first := slices.IndexFunc(h.counts[:], func(n int) bool { return n > 0 })
	if first < 0 || first == len(h.counts)-1 {
		return ""
	}
	most, row := slices.Max(h.counts[:]), []rune{}
	for _, n := range h.counts[first:] {
		row = append(row, []rune(" ▁▂▃▄▅▆▇█")[(n*8+most-1)/most])
	}
	hour := func(n int64) string { return time.Unix(n*3600, 0).UTC().Format("2006-01-02 15:00") }
	return fmt.Sprintf("%s\nby hour from %s to %s UTC, at most %d an hour", string(row), hour(h.last-int64(len(row)-1)), hour(h.last), most)
}
