package snapshot

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"robotsgate/internal/memcache"
)

// An entry is a set with its rules compiled: requests are decided by it.
// It is immutable but for renewing. Its Set has no Body, which file has.
type entry struct {
	Set
	file     content     // that of Set.Good; nil without
	renewing atomic.Bool // a background fetch has been started for it
}

// newEntry compiles the set that a store has under a key.
func newEntry(key string, set Set, maxBytes int) *entry {
	var file content
	if set.Good != nil {
		file = parse(ParseKey(key), set.Body, maxBytes)
		if file.Truncated() { // the limit was higher when it was fetched
			set.Good = new(*set.Good)
			set.Good.setFile(file)
		}
	}
	if set.Last == nil || set.Last.good() {
		set.Last = set.Good // one object for both: a store may have made two of it
	}
	set.Body = nil
	return &entry{Set: set, file: file}
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
func (e *entry) cost(key string) int64 {
	const fixed = 300 // the entry, and its place in the cache
	n := fixed + len(key) + e.Size()
	if e.file != nil {
		n += e.file.Size()
	}
	return int64(n)
}

// A cache holds entries by the key of their [Scope]: those used last in memory, all of them
// in the store as far as that keeps them.
type cache struct {
	store    Store
	maxBytes int // of a file
	entries  *memcache.Cache[*entry]
	unsaved  *writeBehind
	outages  outages
}

func newCache(bytes int64, maxBytes int, store Store, log *slog.Logger) (*cache, error) {
	entries, err := memcache.New[*entry](bytes, 2000)
	if err != nil {
		return nil, fmt.Errorf("snapshot: Settings.CacheBytes: %w", err)
	}
	return &cache{
		store: store, maxBytes: maxBytes,
		entries: entries, unsaved: newWriteBehind(store, max(bytes/2, minUnsaved), log),
	}, nil
}

func (c *cache) close() {
	c.unsaved.close()
	c.entries.Close()
}

// get returns an entry if it is in memory, else nil.
func (c *cache) get(key string) *entry {
	if e, ok := c.entries.Get(key); ok {
		return e
	}
	return c.unsaved.get(key)
}

// find returns an entry from memory or else from the store; nil if nothing is known.
func (c *cache) find(ctx context.Context, key string) *entry {
	if e := c.get(key); e != nil {
		return e
	}
	return c.read(ctx, key)
}

// read returns an entry from the store, nil if it has none.
func (c *cache) read(ctx context.Context, key string) *entry {
	set, ok := c.store.Load(ctx, key)
	if !ok {
		return nil
	}
	return newEntry(key, set, c.maxBytes)
}

// keep keeps an entry in memory that the store has. The caller makes sure that it is not older
// than the one in memory.
func (c *cache) keep(key string, e *entry) {
	if !ParseKey(key).TDMRep { // a failure to fetch tdmrep.json denies nothing
		c.outages.note(key, &e.Set)
	}
	c.entries.Put(key, e, e.cost(key))
}

// keepFound keeps an entry that was found, and returns it. It is saved if another gate has made some of
// it.
func (c *cache) keepFound(key string, found *entry) *entry {
	if !found.Foreign {
		c.keep(key, found)
		return found
	}
	own := &entry{Set: found.Set, file: found.file}
	own.Foreign = false
	c.put(key, own, nil)
	return own
}

// put keeps an entry in memory and saves it in the background. Then it calls saved, which may be nil.
func (c *cache) put(key string, e *entry, saved func()) {
	c.unsaved.add(key, e, saved) // first: it must be found at all times
	c.keep(key, e)
}
