package store

import (
	"encoding/binary"
	"time"
)

// timeSize is the length of a time in a key.
const timeSize = 8

// appendTime appends a time, so that keys sort by it.
func appendTime(b []byte, t time.Time) []byte {
	if t.Before(time.Unix(0, 0)) {
		t = time.Unix(0, 0)
	}
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixNano()))
}

// What a dropKey is of. Superseded answers are dropped before records.
const (
	superseded = 'a' // at the time
	fetched    = 'b' // last at the time
)

// dropKey sorts rows in the order in which they are dropped, the oldest of each kind first.
func dropKey(kind byte, t time.Time, key []byte) []byte {
	return append(appendTime([]byte{kind}, t), key...)
}

// splitDropKey returns the parts of a dropKey.
func splitDropKey(b []byte) (kind byte, t time.Time, key []byte) {
	if len(b) < 1+timeSize {
		return 0, t, nil
	}
	return b[0], time.Unix(0, int64(binary.BigEndian.Uint64(b[1:]))), b[1+timeSize:]
}

// historySuffix is the length of the part that historyKey adds.
const historySuffix = 1 + 1 + timeSize

// historyKey sorts the answers of a scope by their kind, with a body or without, and when they
// began, to which it adds n nanoseconds.
func historyKey(scope string, a Answer, n int) []byte {
	kind := byte('f')
	if a.Snapshot.SHA256 != "" {
		kind = 'b'
	}
	return appendTime(append([]byte(scope), 0, kind), a.From.Add(time.Duration(n)))
}
