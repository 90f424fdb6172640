package store

import (
	"context"
	"sync"

	"robotsgate/policy/snapshot"
)

// A Memory is a snapshot.Store for a process that has no folder of its own. When it is full it
// forgets any of its sets: it can't know which are in use, since the cache in front of it
// answers for those.
type Memory struct {
	maxBytes int64

	mu    sync.Mutex
	sets  map[string]snapshot.Set
	bytes int64
}

// NewMemory returns an empty store that holds about so many bytes at most.
func NewMemory(maxBytes int64) *Memory {
	return &Memory{maxBytes: maxBytes, sets: map[string]snapshot.Set{}}
}

// Load returns the set under a key.
func (m *Memory) Load(_ context.Context, key string) (snapshot.Set, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, ok := m.sets[key]
	return set, ok
}

// Save keeps the sets. It never fails.
func (m *Memory) Save(_ context.Context, sets map[string]snapshot.Set) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, set := range sets {
		m.forget(key)
		n := size(key, set)
		if set.Empty() || n > m.maxBytes {
			continue
		}
		for other := range m.sets {
			if m.bytes+n <= m.maxBytes {
				break
			}
			m.forget(other)
		}
		m.sets[key] = set
		m.bytes += n
	}
	return nil
}

// forget forgets the set under a key, if there is one. The caller holds mu.
func (m *Memory) forget(key string) {
	if set, ok := m.sets[key]; ok {
		m.bytes -= size(key, set)
		delete(m.sets, key)
	}
}

// Acquire grants permission at once: no other process uses the memory.
func (m *Memory) Acquire(context.Context, string) (release func(), changed bool) {
	return nil, false
}

// Usage returns what is in memory.
func (m *Memory) Usage() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Usage{Origins: int64(len(m.sets)), Bytes: m.bytes, Bound: m.maxBytes}
}

func size(key string, set snapshot.Set) int64 {
	const fixed = 300 // its place in the map
	return int64(fixed + 2*len(key) + set.Size())
}
