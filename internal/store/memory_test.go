package store

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"robotsgate/policy"
)

// TestMemoryIsBounded, and forgets what has not been asked for longest.
func TestMemoryIsBounded(t *testing.T) {
	m := NewMemory(100_000)
	body := strings.Repeat("#", 1000)
	for i := range 1000 {
		save(t, m, map[string]policy.Record{fmt.Sprintf("https://%d.example", i): good(body)})
		if _, ok := m.Load("https://0.example"); !ok {
			t.Fatalf("what is always asked for was forgotten after %d", i)
		}
		if m.bytes > m.most || m.order.Len() != len(m.index) {
			t.Fatalf("after %d: %d bytes of %d, %d in order, %d in the index", i, m.bytes, m.most, m.order.Len(), len(m.index))
		}
	}
	if n := len(m.index); n < 40 || n > 100 {
		t.Errorf("%d records of a kilobyte in 100", n)
	}
	if _, ok := m.Load("https://1.example"); ok {
		t.Error("the oldest is still there")
	}
	if got, ok := m.Load("https://999.example"); !ok || same(got, good(body)) != nil {
		t.Errorf("the newest: got %+v, %v", got, ok)
	}
}

// TestMemoryReplaces a record, and counts it once.
func TestMemoryReplaces(t *testing.T) {
	m := NewMemory(1 << 20)
	for i := range 100 {
		save(t, m, map[string]policy.Record{"https://a.example": good(strings.Repeat("#", 100-i))})
	}
	if got, ok := m.Load("https://a.example"); !ok || got.Good.Body != "#" || len(m.index) != 1 || m.bytes != size("https://a.example", got) {
		t.Errorf("got %+v, %v, %d records, %d bytes", got, ok, len(m.index), m.bytes)
	}
	// More than there is room for is not kept, and no harm is done.
	save(t, m, map[string]policy.Record{"https://b.example": good(strings.Repeat("#", 2<<20))})
	if len(m.index) != 0 || m.bytes != 0 {
		t.Errorf("%d records, %d bytes", len(m.index), m.bytes)
	}
}

func TestMemoryAtOnce(t *testing.T) {
	m := NewMemory(10_000)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				origin := fmt.Sprintf("https://%d.example", (g+i)%20)
				m.Save(map[string]policy.Record{origin: good("User-agent: *\n")})
				m.Load(origin)
			}
		})
	}
	wg.Wait()
}

// TestMemoryForgets what an empty record takes the place of.
func TestMemoryForgets(t *testing.T) {
	m := NewMemory(1 << 20)
	save(t, m, map[string]policy.Record{"http://a.example": answered("x")})
	save(t, m, map[string]policy.Record{"http://a.example": {}})
	if _, ok := m.Load("http://a.example"); ok || m.Usage().Bytes != 0 {
		t.Errorf("it is still there, %+v", m.Usage())
	}
}
