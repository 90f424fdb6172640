package audit

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
)

// repair looks at the end of a file that has been opened. The first part of a record, as a
// power cut leaves it, is removed.
func (o *output) repair() {
	tail, err := lastPart(o.path, o.size)
	if err == nil && len(tail) == 0 {
		return
	}
	if err != nil || !isPartOfRecord(tail) || o.lockless { // without the lock another gate may be writing the rest
		o.torn = true
		return
	}
	o.log.Warn("the audit log ended in the middle of a record, as after a power cut; that half is removed", "file", o.path, "bytes", len(tail))
	o.removeLast(len(tail))
}

// lastPart returns what follows the last end of line in a file.
func lastPart(path string, size int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tail := make([]byte, min(size, maxLine))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	i := bytes.LastIndexByte(tail, '\n')
	if i < 0 && size > maxLine {
		return nil, errLong
	}
	return tail[i+1:], nil
}

// isPartOfRecord reports whether text is the beginning of one record. A file system may have
// filled the rest with zeros.
func isPartOfRecord(text []byte) bool {
	const begin = `{"time":"`
	text = bytes.TrimRight(text, "\x00")
	n := min(len(text), len(begin))
	if string(text[:n]) != begin[:n] {
		return false
	}
	var v json.RawMessage
	err := json.NewDecoder(bytes.NewReader(text)).Decode(&v)
	return err == io.EOF || err == io.ErrUnexpectedEOF
}
