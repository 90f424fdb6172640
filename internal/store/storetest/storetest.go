// Package storetest tests implementations of policy.Store.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"robotsgate/policy"
)

// Test checks the promises of policy.Store. Open returns an empty store with room for at
// least a megabyte.
func Test(t *testing.T, open func(t *testing.T) policy.Store) {
	for name, test := range map[string]func(*testing.T, policy.Store){
		"records":    testRecords,
		"replace":    testReplace,
		"forget":     testForget,
		"ownership":  testOwnership,
		"permission": testPermission,
		"concurrent": testConcurrent,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Good returns the record of an origin with this robots.txt.
func Good(body string) policy.Record {
	s := &policy.Snapshot{
		URL: "https://example.com/robots.txt", Status: 200, Fetched: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		SHA256: policy.Digest(body), ETag: `"1"`, Modified: "Thu, 01 Jan 2026 00:00:00 GMT", Lifetime: time.Hour,
	}
	return policy.Record{Good: s, Last: s, Body: []byte(body)}
}

// Failed returns a record of an origin that answers one crawler with 503.
func Failed(failures int) policy.Record {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &policy.Snapshot{Status: 503, Error: "the origin answered 503", Failures: failures, Fetched: first.Add(time.Hour), Since: first, Retry: time.Minute}
	return policy.Record{Bound: map[string]*policy.Snapshot{"bot": s}}
}

// encode returns a record in a form that can be compared.
func encode(t *testing.T, rec policy.Record) string {
	t.Helper()
	data, err := json.MarshalIndent(rec, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func save(t *testing.T, s policy.Store, records map[string]policy.Record) {
	t.Helper()
	if err := s.Save(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, s policy.Store, key string, want policy.Record) {
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

func testRecords(t *testing.T, s policy.Store) {
	scope := policy.Scope{Origin: "https://scoped.example", Crawlers: true}
	token := scope
	token.Token = "bot"
	down := Good("# old")
	down.Last = &policy.Snapshot{Error: "refused", Failures: 2, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	down.Bound = Failed(1).Bound
	down.Refreshed = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	several := Failed(4)
	several.Copies = map[string]*policy.Snapshot{"bot": Good("for bot").Good}
	records := map[string]policy.Record{
		"https://a.example":      Good("User-agent: *\nDisallow: /\n"),
		"https://binary.example": Good("\x00\xff not UTF-8"),
		"https://empty.example":  Good(""),
		"https://down.example":   down,
		scope.Key():              several,
		token.Key():              Good("for bot"),
	}
	save(t, s, records)
	for key, want := range records {
		check(t, s, key, want)
	}
	for _, key := range []string{"https://unknown.example", "http://a.example", "https://a.example:8443", "https://scoped.example", ""} {
		if rec, ok := s.Load(t.Context(), key); ok {
			t.Errorf("%q was never saved, but is found: %s", key, encode(t, rec))
		}
	}
}

func testReplace(t *testing.T, s policy.Store) {
	const key = "https://a.example"
	for i := range 20 {
		rec := Good(fmt.Sprintf("# %d", i%3))
		if i%5 == 4 {
			rec = Failed(i)
		}
		save(t, s, map[string]policy.Record{key: rec})
		check(t, s, key, rec)
	}
}

// testForget: an empty record removes the one before. The same body under other keys stays.
func testForget(t *testing.T, s policy.Store) {
	save(t, s, map[string]policy.Record{"https://a.example": Good("x"), "https://b.example": Good("x")})
	save(t, s, map[string]policy.Record{"https://a.example": {}, "https://unknown.example": {}})
	for _, key := range []string{"https://a.example", "https://unknown.example"} {
		if _, ok := s.Load(t.Context(), key); ok {
			t.Errorf("%s is found after an empty record was saved", key)
		}
	}
	check(t, s, "https://b.example", Good("x"))
}

// testOwnership: the caller may change the map after Save.
func testOwnership(t *testing.T, s policy.Store) {
	records := map[string]policy.Record{"https://a.example": Good("x")}
	save(t, s, records)
	records["https://a.example"] = Good("y")
	records["https://b.example"] = Good("z")
	check(t, s, "https://a.example", Good("x"))
	if _, ok := s.Load(t.Context(), "https://b.example"); ok {
		t.Error("a record is found that was put into the map after Save")
	}
}

// testPermission: one caller after the other gets it, and not after its context has ended.
func testPermission(t *testing.T, s policy.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		release, _ := s.Acquire(ctx, "https://a.example")
		other, _ := s.Acquire(ctx, "https://b.example")
		other()
		release()
	}
	release, _ := s.Acquire(ctx, "https://a.example")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, _ := s.Acquire(ended, "https://a.example")
	late()
	release()
	if ctx.Err() != nil {
		t.Error("Acquire waited although no caller had the permission")
	}
}

// testConcurrent is for the race detector, and finds records under wrong keys.
func testConcurrent(t *testing.T, s policy.Store) {
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 25 {
				n := (g + i) % 7
				key, body := fmt.Sprintf("https://%d.example", n), fmt.Sprintf("# %d", n)
				release, _ := s.Acquire(t.Context(), key)
				if err := s.Save(t.Context(), map[string]policy.Record{key: Good(body)}); err != nil {
					t.Error(err)
				}
				release()
				if rec, ok := s.Load(t.Context(), key); ok && string(rec.Body) != body {
					t.Errorf("%s: got %q, want %q", key, rec.Body, body)
				}
			}
		})
	}
	all.Wait()
}
