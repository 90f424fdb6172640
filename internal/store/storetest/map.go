package storetest

import (
	"context"
	"encoding/json"
	"sync"

	"robotsgate/policy/snapshot"
)

// A Map is a Store for tests, in memory. Several engines may share it, as gates share a server. It keeps sets as JSON,
// so that times lose their monotonic part, as on a disk.
type Map struct {
	mu      sync.Mutex
	rows    map[string][]byte
	permits map[string]chan struct{} // closed when the permission is released
}

// NewMap returns an empty one.
func NewMap() *Map {
	return &Map{rows: map[string][]byte{}, permits: map[string]chan struct{}{}}
}

// Load decodes a row.
func (m *Map) Load(_ context.Context, key string) (set snapshot.Set, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, ok := m.rows[key]
	return set, ok && json.Unmarshal(row, &set) == nil
}

// Save encodes a set.
func (m *Map) Save(_ context.Context, key string, set snapshot.Set) error {
	row, err := json.Marshal(set)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows[key] = row; set.Empty() {
		delete(m.rows, key)
	}
	return err
}

// Acquire waits for the permission.
func (m *Map) Acquire(ctx context.Context, key string) (release func(), changed bool) {
	for {
		m.mu.Lock()
		held := m.permits[key]
		if held == nil {
			own := make(chan struct{})
			m.permits[key] = own
			m.mu.Unlock()
			return sync.OnceFunc(func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				delete(m.permits, key)
				close(own)
			}), true
		}
		m.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return func() {}, true
		}
	}
}
