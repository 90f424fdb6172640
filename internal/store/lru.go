package store

import (
	"container/list"
	"sync"
)

// An lru keeps values by key. When they are larger than its bound, it drops
// those that were not used for longest. It is safe for concurrent use.
type lru[V any] struct {
	maxBytes int64

	mu    sync.Mutex
	bytes int64
	order list.List // of *item[V], the last used in front
	items map[string]*list.Element
}

type item[V any] struct {
	key   string
	value V
	size  int64
}

// newLRU returns an empty cache.
func newLRU[V any](maxBytes int64) *lru[V] {
	return &lru[V]{maxBytes: maxBytes, items: map[string]*list.Element{}}
}

// Get returns the value under a key.
func (c *lru[V]) Get(key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.items[key]
	if e == nil {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*item[V]).value, true
}

// Put keeps a value of this size in bytes, in place of the one under the same
// key. A value that is larger than the bound is not kept.
func (c *lru[V]) Put(key string, value V, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleteLocked(c.items[key])
	if size > c.maxBytes {
		return
	}
	c.items[key] = c.order.PushFront(&item[V]{key, value, size})
	c.bytes += size
	for c.bytes > c.maxBytes {
		c.deleteLocked(c.order.Back())
	}
}

// Delete removes the value under a key, if there is one.
func (c *lru[V]) Delete(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleteLocked(c.items[key])
}

func (c *lru[V]) deleteLocked(e *list.Element) {
	if e == nil {
		return
	}
	i := c.order.Remove(e).(*item[V])
	delete(c.items, i.key)
	c.bytes -= i.size
}

// Usage returns the number of values, their size, and the bound on it.
func (c *lru[V]) Usage() (entries int, bytes, maxBytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.items), c.bytes, c.maxBytes
}
