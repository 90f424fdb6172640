package snapshot

import (
	"cmp"
	"context"
	"sync/atomic"

	"robotsgate/policy/cache"
)

// An entry is a set with its rules compiled: requests are decided by it. It is immutable but for renewing. Its Set has
// no Body, which file has.
type entry struct {
	Set
	key      string      // of the set's [Scope]
	file     content     // that of Set.Good; nil without
	renewing atomic.Bool // an update in the background has been started for it
}

// newEntry compiles the set that a store has under a key.
func newEntry(key string, set Set, maxBytes int) *entry {
	var file content
	if set.Good != nil {
		file = parse(ParseKey(key), set.Body, maxBytes)
	}
	if set.Last == nil || set.Last.good() {
		set.Last = set.Good // one object for both: a store may have made two of it
	}
	set.Body = nil
	return &entry{Set: set, key: key, file: file}
}

// with returns an entry with the answers of set. The Good of set is that of e or of other.
func (e *entry) with(set Set, other *entry) *entry {
	next := &entry{Set: set, key: e.key}
	switch set.Good {
	case nil:
	case e.Good:
		next.file = e.file
	default:
		next.file = other.file
	}
	return next
}

// stored returns the set as a store takes it.
func (e *entry) stored() Set {
	set := e.Set
	if e.file != nil {
		set.Body = []byte(e.file.Body())
	}
	return set
}

// cost estimates the memory that an entry holds, in bytes.
func (e *entry) cost() int64 {
	const fixed = 300 // the entry, and its place in the cache
	n := fixed + len(e.key) + e.Size()
	if e.file != nil {
		n += e.file.Size()
	}
	return int64(n)
}

// get returns an entry if it is in memory, else nil.
func (s *shared) get(key string) *entry {
	if e, ok := s.entries.Get(key); ok {
		return e
	}
	return s.unsaved.get(key)
}

// find returns an entry from memory or else from the store; nil if nothing is known.
func (s *shared) find(ctx context.Context, key string) *entry {
	if e := s.get(key); e != nil {
		return e
	}
	return s.load(ctx, key)
}

// load returns an entry from the store, nil if it has none. A file that was kept under a higher MaxBytes is as if it were
// not there: what is left of it within the limit is kept nowhere as evidence.
func (s *shared) load(ctx context.Context, key string) *entry {
	set, ok := s.store.Load(ctx, key)
	if !ok || int64(len(set.Body)) > s.maxBytes {
		return nil
	}
	return newEntry(key, set, int(s.maxBytes))
}

// put keeps an entry in memory.
func (s *shared) put(e *entry) { s.entries.Put(e.key, e, e.cost()) }

// learn merges what the store has under a key with what is in memory, and returns the result.
func (s *shared) learn(key string) *entry {
	ctx, cancel := context.WithTimeout(s.ctx, s.storeTimeout)
	saved := s.load(ctx, key)
	cancel()
	s.mu.Lock()
	known := cmp.Or(s.get(key), &entry{key: key})
	if saved == nil {
		s.mu.Unlock()
		return known
	}
	set, learned := Merge(known.Set, saved.Set)
	if learned {
		known = known.with(set, saved)
		s.put(known)
	}
	s.mu.Unlock()
	if learned && saved.Foreign {
		s.save(known)
	}
	return known
}

// Cached returns the size of the compiled rules in memory.
func (r *Resolver) Cached() cache.Size { return r.entries.Size() }
