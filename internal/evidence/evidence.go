// Package evidence makes the audit log of a gate a transparency log, which anyone can verify with one
// public key.
//
// The entries of a log are the leaves of a Merkle tree (RFC 6962, 2.1). Checkpoint lines between them
// state the size and the root of the tree (c2sp.org/tlog-checkpoint), signed by the gate
// (c2sp.org/signed-note).
//
// [Log] makes the lines of one log. [Verifier] checks lines, with the keys of [Keys].
package evidence

// Where to change what.
//
//	checkpoint lines, and where the log goes on after a start:
//		log.go and resume.go
//	what audit --verify finds:
//		verify.go, verify_checkpoint.go and verify_end.go, and a story in testdata/script/audit_verify.txtar

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// A Line is a checkpoint line of an audit log, a JSON object. Only the note is signed.
type Line struct {
	Checkpoint string    `json:"checkpoint"` // a signed note
	Time       time.Time `json:"time"`
	Gate       string    `json:"gate"` // the id of the gate that writes the log

	// Edge is the hashes of the complete subtrees of the tree, from left to right. The first line of a
	// log in a file has it, so that the file can be verified without the ones before it. It is not nil
	// there, also if the tree is empty.
	Edge []tlog.Hash `json:"edge,omitzero"`
	// End says that the gate has ended.
	End bool `json:"end,omitempty"`
	// Resumed is how many entries of a gate that was killed are covered here first.
	Resumed int64 `json:"resumed,omitempty"`
}

const checkpointBegin = `{"checkpoint":"`

// IsCheckpoint reports whether text is a checkpoint line, or the beginning of one.
func IsCheckpoint(text []byte) bool { return bytes.HasPrefix(text, []byte(checkpointBegin)) }

// parseLine returns a checkpoint line, which nothing has verified.
func parseLine(text []byte) (l *Line, ok bool) {
	if !IsCheckpoint(text) {
		return nil, false
	}
	l = &Line{}
	return l, json.Unmarshal(text, l) == nil
}

// AppendTo appends the line, with its end.
func (l *Line) AppendTo(b []byte) []byte {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // a time out of range, which the clock can't state
	}
	return append(append(b, text...), '\n')
}

// AppendEntry appends the line of an entry, which must end with the gate's id, with its place in the log.
// Lost is the number of entries before it that could not be written. The result, without the end of the
// line, is a leaf of the tree.
func AppendEntry(b, line []byte, lost, index int64) []byte {
	b = append(b, bytes.TrimSuffix(line, []byte("}\n"))...)
	if lost > 0 {
		b = strconv.AppendInt(append(b, `,"lost":`...), lost, 10)
	}
	b = strconv.AppendInt(append(b, `,"index":`...), index, 10)
	return append(b, "}\n"...)
}

// parseEntry returns what AppendEntry has added to an entry, and the id of its gate. It takes only lines of
// this form: JSON would permit others, which no gate writes, and parsing it takes ten times as long.
func parseEntry(text []byte) (gate string, lost, index int64, ok bool) {
	text, ok = bytes.CutSuffix(text, []byte("}"))
	if !ok || !bytes.HasPrefix(text, []byte(`{"time":"`)) {
		return "", 0, 0, false
	}
	text, index, ok = cutNumber(text, `,"index":`)
	if !ok {
		return "", 0, 0, false
	}
	if rest, n, ok := cutNumber(text, `,"lost":`); ok {
		text, lost = rest, n
	}
	// In a JSON string each quotation mark has a backslash before it, so this is a member.
	const member = `,"gate":"`
	i := bytes.LastIndex(text, []byte(member))
	if i < 0 || text[len(text)-1] != '"' {
		return "", 0, 0, false
	}
	return string(text[i+len(member) : len(text)-1]), lost, index, true
}

// cutNumber returns text without a last member that is a whole number, and the number.
func cutNumber(text []byte, member string) (before []byte, n int64, ok bool) {
	start := max(0, len(text)-len(member)-19) // the longest number has 19 digits
	i := bytes.LastIndex(text[start:], []byte(member))
	if i < 0 {
		return text, 0, false
	}
	digits := string(text[start+i+len(member):])
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return text, 0, false
	}
	return text[:start+i], n, true
}
