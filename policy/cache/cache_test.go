package cache

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

func newCache(t *testing.T, maxBytes int64) *Cache[int] {
	t.Helper()
	c, err := New[int](maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A value is found at once, with its last change.
func TestPutIsFound(t *testing.T) {
	c := newCache(t, 1<<20)
	for i := range 1000 {
		key := fmt.Sprint(i % 10)
		c.Put(key, i, 100)
		if got, ok := c.Get(key); !ok || got != i {
			t.Fatalf("after Put(%s, %d): got %d, %v", key, i, got, ok)
		}
	}
	values := c.Values()
	if slices.Sort(values); len(values) != 10 || values[0] != 990 || values[9] != 999 {
		t.Errorf("got the values %v", values)
	}
	if s := c.Size(); s.Entries != 10 || s.Bytes < 1000 || s.Bytes > 2000 || s.Bound != 1<<20 {
		t.Errorf("usage: %d values, %d bytes of %d", s.Entries, s.Bytes, s.Bound)
	}
}

// A burst of values that fit is not dropped, though ristretto's queue is shorter.
func TestBurst(t *testing.T) {
	c := newCache(t, 64<<20)
	const values = 100_000
	for i := range values {
		c.Put(fmt.Sprint(i), i, 100)
	}
	missing := 0
	for i := range values {
		if got, ok := c.Get(fmt.Sprint(i)); !ok || got != i {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d values are missing", missing, values)
	}
}

// The values never take more than the bound.
func TestBound(t *testing.T) {
	c := newCache(t, 1<<20)
	for i := range 10_000 {
		c.Put(fmt.Sprint(i), i, 1000)
		if s := c.Size(); i%100 == 0 && s.Bytes > 1<<20 {
			t.Fatalf("after %d values: %d with %d bytes", i+1, s.Entries, s.Bytes)
		}
	}
	if s := c.Size(); s.Bytes > 1<<20 || s.Entries < 500 {
		t.Errorf("%d values with %d bytes", s.Entries, s.Bytes)
	}
}

// Close during all other calls panics nowhere.
func TestCloseInUse(t *testing.T) {
	c := newCache(t, 1<<20)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 20_000 {
				key := fmt.Sprint(i % 500)
				c.Put(key, i, 100)
				c.Get(key)
				if i%1000 == 0 {
					c.Size()
				}
			}
		})
	}
	wg.Go(c.Close)
	wg.Go(c.Close)
	wg.Wait()
	if _, ok := c.Get("1"); ok {
		t.Error("a value was found after Close")
	}
}

// Clear removes each value, wherever it is, while other goroutines use the cache.
func TestClear(t *testing.T) {
	c := newCache(t, 1<<20)
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			for n := range 20_000 {
				key := fmt.Sprint("other", (n+i)%500)
				c.Put(key, n, 100)
				c.Get(key)
			}
		})
	}
	for range 20 {
		c.Put("settled", 1, 100)
		c.Put("recent", 2, 100)
		c.Clear()
		for _, key := range []string{"settled", "recent"} {
			if got, ok := c.Get(key); ok {
				t.Errorf("%s: got %d after Clear", key, got)
			}
		}
	}
	others.Wait()
	c.Clear()
	if s := c.Size(); s.Entries != 0 || s.Bytes != 0 {
		t.Errorf("%d values, %d bytes are left", s.Entries, s.Bytes)
	}
	c.Put("again", 3, 100)
	if got, ok := c.Get("again"); !ok || got != 3 {
		t.Errorf("got %d, %v", got, ok)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New[int](0); err == nil {
		t.Error("a cache of 0 bytes was made")
	}
}

func BenchmarkPut(b *testing.B) {
	c, err := New[int](64 << 20)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for i := 0; b.Loop(); i++ {
		c.Put(fmt.Sprint(i%1000), i, 1000)
	}
}
