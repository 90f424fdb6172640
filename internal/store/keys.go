package store

import (
	"encoding/binary"
	"time"
)

// timeKey returns key behind a time that sorts before later ones.
func timeKey(t time.Time, key []byte) []byte {
	return append(appendTime(make([]byte, 0, 8+len(key)), t), key...)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.Before(time.Unix(0, 0)) {
		t = time.Unix(0, 0)
	}
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixNano()))
}

// splitTimeKey returns the parts of a timeKey.
func splitTimeKey(b []byte) (t time.Time, key []byte) {
	if len(b) < 8 {
		return time.Time{}, nil
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))), b[8:]
}

// historySuffix is the length of the part that historyKey adds.
const historySuffix = 1 + 8 + 1

// historyKey sorts the answers of a scope by when they began. The last byte is
// their kind: with a body or without.
func historyKey(key string, a Answer) []byte {
	k := appendTime(append([]byte(key), 0), a.From)
	if a.Snapshot.SHA256 != "" {
		return append(k, 'b')
	}
	return append(k, 'f')
}

// nextHistoryKey changes a historyKey to that of the next nanosecond.
func nextHistoryKey(key []byte) {
	at := key[len(key)-9 : len(key)-1]
	binary.BigEndian.PutUint64(at, binary.BigEndian.Uint64(at)+1)
}
