package audit

import (
	"bytes"
	"encoding/json"
	"io"

	"robotsgate/internal/evidence"
)

// repair looks at the end of a file that has been opened. The first part of an entry, as a
// power cut leaves it, is removed.
func (o *output) repair() {
	tail := make([]byte, min(o.size, evidence.MaxLine))
	_, err := o.f.ReadAt(tail, o.size-int64(len(tail)))
	tail = tail[bytes.LastIndexByte(tail, '\n')+1:]
	line := bytes.TrimRight(tail, "\x00") // a power cut may leave zeros in place of its end
	switch {
	case err == nil && len(tail) == 0:
	// Without the lock another gate may be writing the rest.
	case err == nil && len(tail) < evidence.MaxLine && isPartOfEntry(tail) && !o.lockless:
		o.log.Warn("the audit log ended in the middle of a record, as after a power cut; that half is removed", "file", o.path, "bytes", len(tail))
		o.removeLast(len(tail))
	case err == nil && len(tail) < evidence.MaxLine && len(line) < len(tail) && json.Valid(line) && !o.lockless:
		o.removeLast(len(tail) - len(line))
		o.torn = true
	default:
		o.torn = true
	}
}

// isPartOfEntry reports whether text is the beginning of one line. A file system may have
// filled the rest with zeros.
func isPartOfEntry(text []byte) bool {
	text = bytes.TrimRight(text, "\x00")
	begins := func(begin string) bool { n := min(len(text), len(begin)); return string(text[:n]) == begin[:n] }
	if !begins(`{"time":"`) && !begins(`{"checkpoint":"`) {
		return false
	}
	var v json.RawMessage
	err := json.NewDecoder(bytes.NewReader(text)).Decode(&v)
	return err == io.EOF || err == io.ErrUnexpectedEOF
}
