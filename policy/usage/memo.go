package usage

import (
	"encoding/binary"
	"sync"

	"robotsgate/policy/robotstxt"
)

// A Memo keeps results of [Read]. Most requests to an origin, and to all origins with the same lines in
// robots.txt, have the same result: the Memo returns it again, and with it what [Derive] has made of it. The
// results take some 4 MB at most. The zero Memo is empty. A Memo may be used from several goroutines.
type Memo struct {
	mu      sync.RWMutex
	results map[string]Stated // by memoKey
}

const (
	maxResults = 500 // then the Memo begins anew
	maxMemoKey = 512 // bytes; longer ones are not kept
	maxInMemo  = 16  // preferences; results with more are not kept
)

// Read returns what [Read] returns. Treat the result as immutable.
func (m *Memo) Read(in *Input) Stated {
	if m == nil || !in.MayState() {
		return Read(in)
	}
	var memory [maxMemoKey]byte
	key, ok := in.memoKey(memory[:0])
	if !ok {
		return Read(in)
	}
	m.mu.RLock()
	s, ok := m.results[string(key)]
	m.mu.RUnlock()
	if ok {
		return s
	}
	s = Read(in)
	if in.Effort.Exhausted() || len(s.Preferences) > maxInMemo { // exhausted: another path with this key may state less
		return s
	}
	s.derived = new(sync.Map)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.results == nil || len(m.results) == maxResults {
		m.results = map[string]Stated{}
	}
	m.results[string(key)] = s
	return s
}

// memoKey appends to key all that the result of Read depends on: the lines of robots.txt that may be in force,
// and which of their paths match. It returns false for an Input with something to read beside robots.txt, if
// the key is too long, and if it is not certain which paths match.
func (in *Input) memoKey(key []byte) (_ []byte, ok bool) {
	beside := len(in.Header) + len(in.Tags) + len(in.Metas) + len(in.Links)
	if beside > 0 || in.TDMRep != nil || in.Effort == nil || in.Effort.Exhausted() {
		return nil, false
	}
	var paths *robotstxt.PathMatcher
	add := func(kind byte, r robotstxt.Field) (ok bool) {
		if len(key)+len(r.Value)+2*binary.MaxVarintLen64 > maxMemoKey {
			return false
		}
		key = binary.AppendUvarint(append(key, kind), uint64(r.Line))
		key = append(binary.AppendUvarint(key, uint64(len(r.Value))), r.Value...)
		return true
	}
	if !in.Denied {
		for kind, name := range pathSignals {
			for r := range in.Group.Fields(name) {
				kind := byte(kind)
				if path, _ := cutPath(r.Value); path != "" {
					if paths == nil {
						paths = in.Effort.PathMatcher(in.Path)
					}
					if !paths.Matches(robotstxt.NewPattern(path)) {
						kind += unmatched
					}
				}
				if !add(kind, r) {
					return nil, false
				}
			}
		}
	}
	for r := range in.Group.Fields("License") {
		if !add(groupLicense, r) {
			return nil, false
		}
	}
	if in.Robots != nil {
		for r := range in.Robots.Fields("License") {
			if !r.InGroup && !add(generalLicense, r) {
				return nil, false
			}
		}
	}
	return key, !in.Effort.Exhausted()
}

// pathSignals are the signals whose lines in robots.txt may have a path.
var pathSignals = []string{"Content-Usage", "Content-Signal"}

// The kinds of lines in a memoKey, beside the indexes in pathSignals.
const (
	unmatched      = 10 // is added to those of lines whose path does not match
	groupLicense   = 20
	generalLicense = 21
)

// Derive returns what derive returns for s. If s comes from a [Memo], it keeps the result, which is immutable,
// for each key; a key is of a type of its own.
func Derive[T any](s Stated, key any, derive func(Stated) T) T {
	if s.derived == nil {
		return derive(s)
	}
	if v, ok := s.derived.Load(key); ok {
		return v.(T)
	}
	v := derive(s)
	s.derived.Store(key, v)
	return v
}
