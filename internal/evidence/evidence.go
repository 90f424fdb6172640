// Package evidence makes the audit log of a gate a transparency log, which anyone can verify with one
// public key.
//
// The entries of a log are the leaves of a Merkle tree (RFC 6962, 2.1). Checkpoint lines between them
// state the size and the root of the tree (c2sp.org/tlog-checkpoint), signed by the gate
// (c2sp.org/signed-note).
//
// [Log] makes the lines of one log. [Verifier] checks them, with the [Key] of the log.
package evidence

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// A Line is a checkpoint line of an audit log, a JSON object. Only the note is signed.
type Line struct {
	Checkpoint string    `json:"checkpoint"` // a signed note
	Time       time.Time `json:"time"`
	Gate       string    `json:"gate"`              // the id of the gate that writes the log
	End        bool      `json:"end,omitempty"`     // the gate has ended
	Resumed    int64     `json:"resumed,omitempty"` // how many entries of a gate that was killed are covered here first
}

// Stated returns the name of the log and the size in the note, which nothing has verified.
func (l *Line) Stated() (log string, size int64) { return stated(l.Checkpoint) }

// IsCheckpoint reports whether text is a checkpoint line, or the beginning of one.
func IsCheckpoint(text []byte) bool { return bytes.HasPrefix(text, []byte(`{"checkpoint":"`)) }

// ParseLine returns a checkpoint line, which nothing has verified.
func ParseLine(text []byte) (l *Line, ok bool) {
	if !IsCheckpoint(text) {
		return nil, false
	}
	l = &Line{}
	return l, json.Unmarshal(text, l) == nil
}

// AppendEntry appends the line of an entry with its place in the log. Lost is the number of entries before it
// that could not be written. The result, without the end of the line, is a leaf of the tree.
func AppendEntry(b, line []byte, lost, index int64) []byte {
	b = append(b, bytes.TrimSuffix(line, []byte("}\n"))...)
	if lost > 0 {
		b = strconv.AppendInt(append(b, `,"lost":`...), lost, 10)
	}
	b = strconv.AppendInt(append(b, `,"index":`...), index, 10)
	return append(b, "}\n"...)
}

// parseEntry returns the index of an entry, and about when it was written. It takes only lines as gates write
// them, since parsing any JSON takes ten times as long.
func parseEntry(text []byte) (index int64, written time.Time, ok bool) {
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

// durationIn returns the duration in the text of an entry, 0 if it has none.
func durationIn(text []byte) time.Duration {
	const member = `,"duration":`
	i := bytes.LastIndex(text, []byte(member))
	if i < 0 {
		return 0
	}
	number, _, _ := bytes.Cut(text[i+len(member):], []byte(","))
	seconds, _ := strconv.ParseFloat(string(number), 64)
	return time.Duration(min(max(seconds, 0), 1e9) * float64(time.Second))
}
