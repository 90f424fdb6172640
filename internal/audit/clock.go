package audit

import (
	"strconv"
	"time"
)

// A clock knows some seconds by heart, as RFC 3339 writes them: most times of records
// are in one that others are in too.
type clock [8]struct {
	second int64 // Unix time; 0: none yet
	text   [len("2006-01-02T15:04:05")]byte
}

// append appends a time as its AppendText does.
func (c *clock) append(b []byte, t time.Time) ([]byte, error) {
	second := t.Unix()
	known := &c[uint64(second)%uint64(len(c))]
	if known.second != second || second == 0 || t.Location() != time.UTC {
		start := len(b)
		b, err := t.AppendText(b)
		if err == nil && t.Location() == time.UTC {
			known.second = second
			copy(known.text[:], b[start:])
		}
		return b, err
	}
	b = append(b, known.text[:]...)
	if ns := t.Nanosecond(); ns > 0 {
		b = appendFraction(b, ns)
	}
	return append(b, 'Z'), nil
}

// appendFraction appends nanoseconds as the fraction of a second, without zeros behind.
func appendFraction(b []byte, ns int) []byte {
	point := len(b)
	b = strconv.AppendInt(b, int64(time.Second)+int64(ns), 10)
	b[point] = '.'
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}
