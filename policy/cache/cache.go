// Package cache keeps values in memory within a bound on their bytes: of any type in a [Cache], which is ristretto
// without its surprises, and the robots tags of pages in [Tags]. [Lifetime] says for how long a response is fresh (RFC 9111).
//
// Ristretto carries out a Set later, may drop it when its queue is full, and panics when it is
// used during its Close. So a value with a new key waits until ristretto has taken or refused it.
package cache

import (
	"errors"
	"fmt"
	"sync"

	"github.com/dgraph-io/ristretto/v2"
)

// A Cache keeps values by key, and drops those that are read least. It may refuse a value when it is full. It is safe
// for concurrent use.
type Cache[V any] struct {
	puts sync.Mutex // one after another, so that the queue has room

	mu     sync.RWMutex // held for writing by what ristretto does not permit at the same time as other calls
	front  *ristretto.Cache[string, V]
	closed bool
}

// New returns an empty cache of maxBytes, whose values have about typical bytes each.
func New[V any](maxBytes, typical int64) (*Cache[V], error) {
	if maxBytes <= 0 {
		return nil, errors.New("a cache of 0 bytes")
	}
	front, err := ristretto.NewCache(&ristretto.Config[string, V]{
		NumCounters: min(max(10*maxBytes/typical, 10_000), 20_000_000), // ten for each value
		MaxCost:     maxBytes,
		BufferItems: 64,
	})
	if err != nil {
		return nil, fmt.Errorf("a cache of %d bytes: %w", maxBytes, err)
	}
	return &Cache[V]{front: front}, nil
}

// Get returns the value under a key.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.front.Get(key)
}

// Put keeps a value of this size in bytes, in place of the one under the same key.
func (c *Cache[V]) Put(key string, value V, size int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return
	}
	if _, ok := c.front.Get(key); ok { // ristretto replaces a value at once
		c.front.Set(key, value, size)
		return
	}
	c.puts.Lock()
	defer c.puts.Unlock()
	c.front.Set(key, value, size)
	c.front.Wait()
}

// Clear removes all values.
func (c *Cache[V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.front.Clear()
	}
}

// Values returns all values.
func (c *Cache[V]) Values() (all []V) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.front.IterValues(func(v V) (stop bool) { all = append(all, v); return false })
	return all
}

// A Size is what a cache holds.
type Size struct {
	Entries int
	Bytes   int64
	Bound   int64 // on Bytes
}

// Size returns what the cache holds. It looks at every value: not for every request.
func (c *Cache[V]) Size() Size {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := Size{Bound: c.front.MaxCost()}
	s.Bytes = s.Bound - c.front.RemainingCost()
	c.front.IterValues(func(V) (stop bool) { s.Entries++; return false })
	return s
}

// Close frees the cache. Nothing is found after it.
func (c *Cache[V]) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.front.Close()
}
