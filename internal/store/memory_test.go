package store

import (
	"fmt"
	"strings"
	"testing"

	"robotsgate/policy/snapshot"
)

// TestMemoryIsBounded: sets are forgotten, but not the newest.
func TestMemoryIsBounded(t *testing.T) {
	m := NewMemory(100_000)
	body := strings.Repeat("#", 1000)
	var set snapshot.Set
	for i := range 1000 {
		set = answered(body)
		save(t, m, map[string]snapshot.Set{fmt.Sprintf("https://%d.example", i): set})
		if u := m.Usage(); u.Bytes > u.Bound {
			t.Fatalf("after %d: %d bytes of %d", i, u.Bytes, u.Bound)
		}
	}
	if n := m.Usage().Origins; n < 40 || n > 100 {
		t.Errorf("%d records of a kilobyte in 100", n)
	}
	loaded(t, m, "https://999.example", set)
}

// TestMemoryReplaces: a replaced set is counted once.
func TestMemoryReplaces(t *testing.T) {
	m := NewMemory(1 << 20)
	for i := range 100 {
		save(t, m, map[string]snapshot.Set{"https://a.example": answered(strings.Repeat("#", 100-i))})
	}
	if got, ok := m.Load(t.Context(), "https://a.example"); !ok || string(got.Body) != "#" || m.Usage() != (Usage{Origins: 1, Bytes: size("https://a.example", got), Bound: 1 << 20}) {
		t.Errorf("got %+v, %v, %+v", got, ok, m.Usage())
	}
	// A set beyond the bound is not kept, and the others stay.
	save(t, m, map[string]snapshot.Set{"https://b.example": answered(strings.Repeat("#", 2<<20))})
	absent(t, m, "https://b.example")
	if m.Usage().Origins != 1 {
		t.Errorf("got %+v", m.Usage())
	}
	// An empty set removes the one before.
	save(t, m, map[string]snapshot.Set{"https://a.example": {}})
	absent(t, m, "https://a.example")
	if m.Usage().Bytes != 0 {
		t.Errorf("got %+v", m.Usage())
	}
}
