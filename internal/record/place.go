package record

import (
	"bytes"
	"strconv"
	"time"
)

// A Place is where a record is in the log of its gate.
type Place struct {
	Lost  int    `json:"lost,omitempty"`  // records before this one that could not be written
	Index *int64 `json:"index,omitempty"` // from 0; nil: an earlier version has written it
}

// AppendPlace appends the line of a record with its place in the log. Lost is the number of records before it
// that could not be written. The result, without the end of the line, is a leaf of the log's tree.
func AppendPlace(b, line []byte, lost, index int64) []byte {
	b = append(b, bytes.TrimSuffix(line, []byte("}\n"))...)
	if lost > 0 {
		b = strconv.AppendInt(append(b, `,"lost":`...), lost, 10)
	}
	b = strconv.AppendInt(append(b, `,"index":`...), index, 10)
	return append(b, "}\n"...)
}

// ReadPlace returns the index of a record in the log, and about when it was written. It takes only lines as gates write
// them, since parsing any JSON takes ten times as long.
func ReadPlace(text []byte) (index int64, written time.Time, ok bool) {
	const begin, member = `{"time":"`, `,"index":`
	rest, ok := bytes.CutPrefix(text, []byte(begin))
	i := bytes.LastIndex(rest, []byte(member))
	if !ok || i < 0 {
		return 0, time.Time{}, false
	}
	digits, ok := bytes.CutSuffix(rest[i+len(member):], []byte("}"))
	index, err := strconv.ParseInt(string(digits), 10, 64)
	if !ok || err != nil || index < 0 || strconv.FormatInt(index, 10) != string(digits) {
		return 0, time.Time{}, false
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	at, err := time.Parse(time.RFC3339Nano, string(value))
	if err != nil {
		return 0, time.Time{}, false
	}
	return index, at.Add(durationIn(rest[:i])), true
}

// durationIn returns the duration in the text of a record, 0 if it has none.
func durationIn(text []byte) time.Duration {
	const member = `,"duration":`
	i := bytes.LastIndex(text, []byte(member))
	if i < 0 {
		return 0
	}
	number, _, _ := bytes.Cut(text[i+len(member):], []byte(","))
	seconds, _ := strconv.ParseFloat(string(number), 64)
	return Seconds(seconds)
}
