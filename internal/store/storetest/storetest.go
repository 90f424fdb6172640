// Package storetest tests implementations of snapshot.Store.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"robotsgate/policy/snapshot"
)

// Test checks the promises of snapshot.Store. Open returns an empty store with room for at
// least a megabyte.
func Test(t *testing.T, open func(t *testing.T) snapshot.Store) {
	for name, test := range map[string]func(*testing.T, snapshot.Store){
		"records":    testSets,
		"replace":    testReplace,
		"forget":     testForget,
		"permission": testPermission,
		"concurrent": testConcurrent,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Good returns the set of an origin with this robots.txt.
func Good(body string) snapshot.Set {
	s := &snapshot.Snapshot{
		URL: "https://example.com/robots.txt", Status: 200, Fetched: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		SHA256: snapshot.Digest(body), ETag: `"1"`, Modified: "Thu, 01 Jan 2026 00:00:00 GMT", Lifetime: time.Hour,
	}
	return snapshot.Set{Good: s, Last: s, Body: []byte(body)}
}

// Failed returns a set of an origin that answers one crawler with 503.
func Failed(failures int) snapshot.Set {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &snapshot.Snapshot{Status: 503, Error: "the origin answered 503", Failures: failures, Fetched: first.Add(time.Hour), Since: first, Retry: time.Minute}
	return snapshot.Set{Last: s}
}

// encode returns a set in a form that can be compared.
func encode(t *testing.T, set snapshot.Set) string {
	t.Helper()
	data, err := json.MarshalIndent(set, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func save(t *testing.T, s snapshot.Store, sets map[string]snapshot.Set) {
	t.Helper()
	for key, set := range sets {
		if err := s.Save(t.Context(), key, set); err != nil {
			t.Fatal(err)
		}
	}
}

func check(t *testing.T, s snapshot.Store, key string, want snapshot.Set) {
	t.Helper()
	got, ok := s.Load(t.Context(), key)
	if !ok {
		t.Errorf("%s is lost", key)
		return
	}
	if got, want := encode(t, got), encode(t, want); got != want {
		t.Errorf("%s: got %s, want %s", key, got, want)
	}
}

func testSets(t *testing.T, s snapshot.Store) {
	scope := snapshot.Scope{Origin: "https://scoped.example", Asker: "Bot/1.0 (+https://a.example/)"}
	other := scope
	other.Asker = "Bot/2.0"
	tdmrep := snapshot.Scope{Origin: "https://a.example", TDMRep: true}
	down := Good("# old")
	down.Last = &snapshot.Snapshot{Error: "refused", Failures: 2, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	down.Refreshed = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	sets := map[string]snapshot.Set{
		"https://a.example":      Good("User-agent: *\nDisallow: /\n"),
		"https://binary.example": Good("\x00\xff not UTF-8"),
		"https://empty.example":  Good(""),
		"https://down.example":   down,
		scope.Key():              Failed(4),
		other.Key():              Good("for bot"),
		tdmrep.Key():             Good("[]"),
	}
	save(t, s, sets)
	for key, want := range sets {
		check(t, s, key, want)
	}
	for _, key := range []string{"https://unknown.example", "http://a.example", "https://a.example:8443", "https://scoped.example", ""} {
		if set, ok := s.Load(t.Context(), key); ok {
			t.Errorf("%q was never saved, but is found: %s", key, encode(t, set))
		}
	}
}

func testReplace(t *testing.T, s snapshot.Store) {
	const key = "https://a.example"
	for i := range 20 {
		set := Good(fmt.Sprintf("# %d", i%3))
		if i%5 == 4 {
			set = Failed(i)
		}
		save(t, s, map[string]snapshot.Set{key: set})
		check(t, s, key, set)
	}
}

// testForget: an empty set removes the one before. The same body under other keys stays.
func testForget(t *testing.T, s snapshot.Store) {
	save(t, s, map[string]snapshot.Set{"https://a.example": Good("x"), "https://b.example": Good("x")})
	save(t, s, map[string]snapshot.Set{"https://a.example": {}, "https://unknown.example": {}})
	for _, key := range []string{"https://a.example", "https://unknown.example"} {
		if _, ok := s.Load(t.Context(), key); ok {
			t.Errorf("%s is found after an empty record was saved", key)
		}
	}
	check(t, s, "https://b.example", Good("x"))
}

// testPermission: one caller after the other gets it, and not after its context has ended.
func testPermission(t *testing.T, s snapshot.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		release := acquire(ctx, s, "https://a.example")
		other := acquire(ctx, s, "https://b.example")
		other()
		release()
	}
	release := acquire(ctx, s, "https://a.example")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late := acquire(ended, s, "https://a.example")
	late()
	release()
	if ctx.Err() != nil {
		t.Error("Acquire waited although no caller had the permission")
	}
}

// acquire returns what releases a permission.
func acquire(ctx context.Context, s snapshot.Store, key string) (release func()) {
	if release, _ = s.Acquire(ctx, key); release == nil {
		return func() {}
	}
	return release
}

// testConcurrent is for the race detector, and finds sets under wrong keys.
func testConcurrent(t *testing.T, s snapshot.Store) {
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 25 {
				n := (g + i) % 7
				key, body := fmt.Sprintf("https://%d.example", n), fmt.Sprintf("# %d", n)
				release := acquire(t.Context(), s, key)
				if err := s.Save(t.Context(), key, Good(body)); err != nil {
					t.Error(err)
				}
				release()
				if set, ok := s.Load(t.Context(), key); ok && string(set.Body) != body {
					t.Errorf("%s: got %q, want %q", key, set.Body, body)
				}
			}
		})
	}
	all.Wait()
}
