package store

import (
	"context"

	"robotsgate/policy"
)

// A Memory is a policy.Store for a process that has no folder of its own. When it
// is full it forgets the records that were not loaded or saved for longest.
type Memory struct {
	records *lru[policy.Record]
}

// NewMemory returns an empty store that holds about so many bytes at most.
func NewMemory(maxBytes int64) *Memory {
	return &Memory{records: newLRU[policy.Record](maxBytes)}
}

// Load returns the record under a key.
func (m *Memory) Load(_ context.Context, key string) (policy.Record, bool) {
	return m.records.Get(key)
}

// Save keeps the records. It never fails.
func (m *Memory) Save(_ context.Context, records map[string]policy.Record) error {
	for key, rec := range records {
		if rec.Empty() {
			m.records.Delete(key)
			continue
		}
		m.records.Put(key, rec, size(key, rec))
	}
	return nil
}

// Acquire grants permission at once: no other process uses the memory.
func (m *Memory) Acquire(context.Context, string) (release func(), changed bool) {
	return func() {}, false
}

func size(key string, rec policy.Record) int64 {
	const fixed = 300 // its place in the cache
	return int64(fixed + 2*len(key) + rec.Size())
}
