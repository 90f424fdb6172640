// Package memcache is a cache in memory with a bound on its bytes: ristretto, without its
// surprises.
//
// Ristretto carries out a Set later, or drops it when its queue is full, and panics when it is
// used during its Close. So a value that was put is kept apart until ristretto has taken it, or
// has refused it with room in its queue, which is its way to say that other values are read more
// often.
package memcache

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

const (
	// settleAfter is how long a value waits: to wait for ristretto after each would cost more
	// than the rest of a request's work with the cache.
	settleAfter = 100 * time.Millisecond
	// maxRecent bounds the values that wait: half of what ristretto's queue holds.
	maxRecent = 16_000
)

// A Cache keeps values by key, and drops those that are read least. A value that was just put
// is always found. It is safe for concurrent use.
type Cache[V any] struct {
	front    *ristretto.Cache[string, V]
	maxBytes int64
	most     int64 // of bytes: what waits is beside what ristretto holds

	settling sync.Mutex // held by the goroutine that settles

	mu     sync.RWMutex
	recent map[string]sized[V] // not given to ristretto yet
	given  map[string]sized[V] // ristretto may not have taken them yet
	bytes  int64               // of recent, at most
	timer  *time.Timer         // settles
	closed bool
}

type sized[V any] struct {
	value V
	size  int64
}

// New returns an empty cache of maxBytes, whose values have about typical bytes each.
func New[V any](maxBytes, typical int64) (*Cache[V], error) {
	if maxBytes <= 0 {
		return nil, errors.New("a cache of 0 bytes")
	}
	most := min(maxBytes/8, 4<<20)
	front, err := ristretto.NewCache(&ristretto.Config[string, V]{
		NumCounters: min(max(10*maxBytes/typical, 10_000), 20_000_000), // ten for each value
		MaxCost:     maxBytes - 2*most,                                 // beside recent and given
		BufferItems: 64,
	})
	if err != nil {
		return nil, fmt.Errorf("a cache of %d bytes: %w", maxBytes, err)
	}
	c := &Cache[V]{front: front, maxBytes: maxBytes, most: most, recent: map[string]sized[V]{}}
	c.timer = time.AfterFunc(settleAfter, c.settle)
	return c, nil
}

// Get returns the value under a key.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return value, false
	}
	if s, ok := c.recent[key]; ok {
		return s.value, true
	}
	if s, ok := c.given[key]; ok {
		return s.value, true
	}
	return c.front.Get(key)
}

// Put keeps a value of this size in bytes, in place of the one under the same key.
func (c *Cache[V]) Put(key string, value V, size int64) {
	c.mu.Lock()
	if len(c.recent) == 0 && !c.closed {
		c.timer.Reset(settleAfter)
	}
	c.recent[key] = sized[V]{value, size}
	c.bytes += size
	full := c.bytes >= c.most || len(c.recent) >= maxRecent
	c.mu.Unlock()
	if full {
		c.settle()
	}
}

// settle gives to ristretto what waits.
func (c *Cache[V]) settle() {
	c.settling.Lock()
	defer c.settling.Unlock()
	c.mu.Lock()
	batch, closed := c.recent, c.closed
	c.given, c.recent, c.bytes = batch, map[string]sized[V]{}, 0
	c.mu.Unlock()
	if closed {
		return
	}
	for key, s := range batch {
		c.front.Set(key, s.value, s.size) // once for each key: of two Sets the first can stay
	}
	c.front.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = nil
}

// Clear removes all values.
func (c *Cache[V]) Clear() {
	c.settling.Lock()
	defer c.settling.Unlock()
	c.mu.Lock() // with both locks no other call uses ristretto, as its Clear requires
	defer c.mu.Unlock()
	if !c.closed {
		c.recent, c.bytes = map[string]sized[V]{}, 0
		c.front.Clear()
	}
}

// Values returns all values. Of two with one key the older one comes first.
func (c *Cache[V]) Values() (all []V) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return nil
	}
	c.front.IterValues(func(v V) (stop bool) { all = append(all, v); return false })
	for _, batch := range []map[string]sized[V]{c.given, c.recent} {
		for _, s := range batch {
			all = append(all, s.value)
		}
	}
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
	if c.closed {
		return Size{Bound: c.maxBytes}
	}
	s := Size{len(c.recent), c.front.MaxCost() - c.front.RemainingCost() + c.bytes, c.maxBytes}
	c.front.IterValues(func(V) (stop bool) { s.Entries++; return false })
	return s
}

// Close frees the cache. Nothing is found after it.
func (c *Cache[V]) Close() {
	c.settling.Lock() // ristretto has taken what it was given
	defer c.settling.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.timer.Stop()
		c.front.Close()
	}
}
