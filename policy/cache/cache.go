// Package cache keeps in memory, within a bound on the bytes, values of any type in a [Cache], and the robots tags of
// pages in [Tags]. [Lifetime] says for how long a response is fresh (RFC 9111).
package cache

import (
	"sync"

	"github.com/dgraph-io/ristretto/v2"
)

// A Cache keeps values by key, and drops those that are read least. It may refuse a value when it is full. It is safe
// for concurrent use.
type Cache[V any] struct {
	open  sync.RWMutex // held for writing by Close, during which ristretto permits no other call
	front *ristretto.Cache[string, V]
}

// New returns an empty cache of maxBytes.
func New[V any](maxBytes int64) (*Cache[V], error) {
	front, err := ristretto.NewCache(&ristretto.Config[string, V]{
		NumCounters: min(max(maxBytes/200, 10_000), 20_000_000), // ten for each value of 2 kB
		MaxCost:     maxBytes,
		BufferItems: 64,
	})
	return &Cache[V]{front: front}, err
}

// Get returns the value under a key.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	c.open.RLock()
	defer c.open.RUnlock()
	return c.front.Get(key)
}

// Put keeps a value of this size in bytes, in place of the one under the same key.
func (c *Cache[V]) Put(key string, value V, size int64) {
	c.open.RLock()
	defer c.open.RUnlock()
	c.front.Set(key, value, size)
	c.front.Wait() // ristretto queues a new value
}

// Clear removes all values.
func (c *Cache[V]) Clear() {
	c.open.Lock()
	defer c.open.Unlock()
	c.front.Clear()
}

// Values returns all values.
func (c *Cache[V]) Values() (all []V) {
	c.front.IterValues(func(v V) (stop bool) { all = append(all, v); return false })
	return all
}

// Size returns what the cache holds. It looks at every value: not for every request.
func (c *Cache[V]) Size() Size {
	bound := c.front.MaxCost()
	return Size{len(c.Values()), bound - c.front.RemainingCost(), bound}
}

// Close frees the cache. Nothing is found after it.
func (c *Cache[V]) Close() {
	c.open.Lock()
	defer c.open.Unlock()
	c.front.Close()
}
