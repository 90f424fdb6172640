package store

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func lruKeys(c *lru[int], from ...string) string {
	var present []string
	for _, key := range from {
		if _, ok := c.items[key]; ok {
			present = append(present, key)
		}
	}
	return strings.Join(present, " ")
}

func TestLRUBound(t *testing.T) {
	c := newLRU[int](10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	c.Get("a")
	c.Put("c", 3, 4)
	if got, want := lruKeys(c, "a", "b", "c"), "a c"; got != want {
		t.Errorf("after c: got %q, want %q, since b was not used for longest", got, want)
	}
	c.Put("a", 4, 6)
	if got, ok := c.Get("a"); got != 4 || !ok {
		t.Errorf("a: got %d, %v, want the new value", got, ok)
	}
	if got, want := lruKeys(c, "a", "b", "c"), "a c"; got != want {
		t.Errorf("after a grew: got %q, want %q", got, want)
	}
	c.Put("c", 5, 11)
	if n, bytes, _ := c.Usage(); n != 1 || bytes != 6 {
		t.Errorf("after a value beyond the bound: %d values, %d bytes, want only the others", n, bytes)
	}
	c.Put("d", 6, 10)
	c.Delete("d")
	c.Delete("d")
	if n, bytes, most := c.Usage(); n != 0 || bytes != 0 || most != 10 {
		t.Errorf("after Delete: %d values, %d bytes, bound %d", n, bytes, most)
	}
}

// TestLRUConcurrent is for the race detector.
func TestLRUConcurrent(t *testing.T) {
	c := newLRU[int](1000)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				key := fmt.Sprint(i % 300)
				c.Put(key, g, int64(i%10))
				c.Get(key)
				if i%7 == 0 {
					c.Delete(key)
				}
			}
		})
	}
	wg.Wait()
	var sum int64
	for _, e := range c.items {
		sum += e.Value.(*item[int]).size
	}
	if n, bytes, _ := c.Usage(); sum != bytes || bytes > 1000 || n != c.order.Len() {
		t.Errorf("%d values, %d in order, %d bytes counted, %d found", n, c.order.Len(), bytes, sum)
	}
}

func BenchmarkLRU(b *testing.B) {
	c := newLRU[int](1 << 20)
	for i := range 1000 {
		c.Put(fmt.Sprint(i), i, 100)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Get("500")
	}
}
