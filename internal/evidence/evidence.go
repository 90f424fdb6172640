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
