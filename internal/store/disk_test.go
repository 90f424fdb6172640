package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

var ample = Limits{Keep: 1000 * time.Hour, Bytes: 1 << 30}

// openFor returns a store with these limits; it is closed at the end of the test. A warning fails the test.
func openFor(t *testing.T, dir string, limits Limits) *Disk {
	t.Helper()
	d, log := openLogged(t, dir, limits)
	t.Cleanup(func() {
		if log.Len() > 0 {
			t.Errorf("log: %s", log)
		}
	})
	return d
}

// openLogged returns a store and what it logs.
func openLogged(t *testing.T, dir string, limits Limits) (*Disk, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	d, err := Open(dir, limits, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, &log
}

// origin returns a different origin for each n.
func origin(n int) string { return fmt.Sprintf("https://%d.example", n) }

// robots returns a body of this size that is different for each n.
func robots(n, size int) string {
	b := fmt.Sprintf("User-agent: *\nDisallow: /%d\n", n)
	return b + strings.Repeat("#", max(size-len(b), 0))
}

// answered returns the set of an origin that has just answered with a body.
func answered(body string) snapshot.Set {
	s := &snapshot.Snapshot{Status: 200, Fetched: time.Now().UTC(), SHA256: snapshot.Digest(body)}
	return snapshot.Set{Good: s, Last: s, Body: []byte(body)}
}

// down returns set after its origin has just failed.
func down(set snapshot.Set, status int) snapshot.Set {
	set.Last = &snapshot.Snapshot{Status: status, Error: fmt.Sprint(time.Now()), Fetched: time.Now().UTC()}
	return set
}

func save(t *testing.T, s snapshot.Store, sets map[string]snapshot.Set) {
	t.Helper()
	if err := s.Save(t.Context(), sets); err != nil {
		t.Fatal(err)
	}
}

// loaded fails the test if a set is not found as it was saved.
func loaded(t *testing.T, s snapshot.Store, key string, want snapshot.Set) {
	t.Helper()
	got, ok := s.Load(t.Context(), key)
	if !ok {
		t.Errorf("%s is not found", key)
	} else if err := same(got, want); err != nil {
		t.Errorf("%s: %v", key, err)
	}
}

// absent fails the test if there is a set under a key.
func absent(t *testing.T, s snapshot.Store, key string) {
	t.Helper()
	if got, ok := s.Load(t.Context(), key); ok {
		t.Errorf("%s is found: %+v", key, got)
	}
}

func same(got, want snapshot.Set) error {
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if !bytes.Equal(a, b) {
		return fmt.Errorf("got %s, want %s", a, b)
	}
	if (got.Last == got.Good) != (want.Last == want.Good) {
		return errors.New("Last and Good are not the same as they were")
	}
	return nil
}

// kept reports whether a body is on disk.
func (d *Disk) kept(body string) bool {
	_, err := d.Body(snapshot.Digest(body))
	return err == nil
}

// onDisk returns the size of the files in the folder of snapshots.
func onDisk(t *testing.T, dir string) (size int64) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, snapshotsDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

// sound compares the index in memory with the files, and with what it says itself.
func sound(t *testing.T, d *Disk) {
	t.Helper()
	d.writing.Lock()
	defer d.writing.Unlock()
	x, err := openIndex(d.dir, os.O_RDONLY, d.keep)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for key, r := range x.records { // answers that were dropped are in the files until their segment is removed
		if _, known := d.records[key]; r.kind == answer && !known {
			x.remove(key)
		}
	}
	if !maps.Equal(x.records, d.records) {
		t.Errorf("%d records in the files, %d in memory, or other ones", len(x.records), len(d.records))
	}
	if x.origins != d.origins || len(x.segments) != len(d.segments) {
		t.Fatalf("in the files: %d origins, %d segments; in memory: %d, %d", x.origins, len(x.segments), d.origins, len(d.segments))
	}
	needed, answers := map[uint32]int64{}, 0
	for key, r := range d.records {
		if r.kind == answer {
			answers++
		}
		needed[r.segment] += r.bytes()
		var line struct{ Key string }
		body, err := d.read(r, &line)
		if err != nil || (r.text != 0 || len(body) > 0) && bodyID(snapshot.Digest(string(body))) != r.text {
			t.Errorf("record %x of %s: %v, a body of %d bytes", key, line.Key, err, len(body))
		}
	}
	for i, s := range d.segments {
		if x.segments[i].damaged > s.damaged {
			t.Errorf("%d items are damaged", x.segments[i].damaged)
		}
		if f := x.segments[i]; s.number != f.number || s.size != f.size || s.items != f.items || s.needed != f.needed || s.needed != needed[s.number] || s.needed > s.size {
			t.Errorf("a segment in the files: %+v, in memory: %+v; its records have %d bytes", f, s, needed[s.number])
		}
	}
	listed := map[id]bool{}
	for _, some := range d.answers {
		for _, s := range some {
			if d.records[s.key].kind == answer && !listed[s.key] {
				listed[s.key] = true
			} else {
				t.Errorf("answer %x is gone, or listed twice", s.key)
			}
		}
	}
	if len(listed) != answers {
		t.Errorf("%d answers are listed of %d", len(listed), answers)
	}
}

// TestRestart: all sets are found after a restart, as they were, and readable for the owner of the folder only.
func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	failed := down(snapshot.Set{}, 503)
	both := down(answered("# old"), 0)
	both.Refreshed = time.Now().UTC()
	sets := map[string]snapshot.Set{
		"https://a.example":      answered("User-agent: *\nDisallow: /\n"),
		"https://b.example":      answered("\x00\xff not UTF-8"),
		"https://empty.example":  answered(""),
		"https://failed.example": failed,
		"https://both.example":   both,
		"https://again.example":  answered("# old"),
	}
	d := openFor(t, dir, ample)
	save(t, d, sets)
	for range 3 {
		for key, want := range sets {
			loaded(t, d, key, want)
		}
		absent(t, d, "https://unknown.example")
		sound(t, d)
		d.Close()
		d = openFor(t, dir, ample)
	}
	for path, want := range map[string]os.FileMode{"": 0o700, "lock": 0o600, "00000001.data": 0o600, "00000001.index": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, snapshotsDir, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: got %v, %v, want %v", path, info, err, want)
		}
	}
}

// TestClosed: late requests find nothing, and nothing is logged.
func TestClosed(t *testing.T) {
	d := openFor(t, t.TempDir(), ample)
	save(t, d, map[string]snapshot.Set{origin(1): answered("")})
	for range 2 {
		d.Close()
	}
	absent(t, d, origin(1))
	if err := d.Save(t.Context(), map[string]snapshot.Set{origin(1): answered("")}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("saved after Close: %v", err)
	}
	history, err := d.History(origin(1))
	hosts, hostErr := d.HostOrigins("1.example")
	if err := errors.Join(err, hostErr); err != nil || len(history)+len(hosts) > 0 || d.kept("") {
		t.Errorf("got %v, %v, %v", history, hosts, err)
	}
}

// TestAtOnce: Load and History find what was saved while others save, drop and move it, until Close.
func TestAtOnce(t *testing.T) {
	d := openFor(t, t.TempDir(), Limits{Bytes: 256 << 10})
	const changes = "https://changes.example"
	var saving, reading sync.WaitGroup
	closed := make(chan struct{})
	for g := range 2 {
		saving.Go(func() {
			for i := range 25 {
				sets := map[string]snapshot.Set{changes: answered(robots(i%3, 100)), origin(-1 - i%3): answered(robots(i%3, 100))}
				for n := range 10 { // too many for all to stay
					sets[origin(1000*g+10*i+n)] = answered(robots(10*i+n, 1000))
				}
				if err := d.Save(t.Context(), sets); err != nil {
					t.Error(err)
				}
			}
		})
		reading.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-closed:
					return
				default:
				}
				if set, ok := d.Load(t.Context(), changes); ok && snapshot.Digest(string(set.Body)) != set.Good.SHA256 {
					t.Errorf("got %q", set.Body)
				}
				history, err := d.History(changes)
				if err != nil || len(history) > 1 { // without Keep
					t.Errorf("got %v, %v", history, err)
				}
				d.Usage()
			}
		})
	}
	saving.Wait()
	sound(t, d)
	saving.Go(func() {
		for d.Save(t.Context(), map[string]snapshot.Set{changes: answered("the last")}) == nil {
		}
	})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	saving.Wait()
	close(closed)
	reading.Wait()
}

// TestSharedBodies: a body is kept as long as a set or an answer names it, also when it is moved.
func TestSharedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, limits := t.TempDir(), Limits{Keep: 24 * time.Hour, Bytes: 1 << 20}
		d := openFor(t, dir, limits)
		defer func() { d.Close() }()
		shared, saved := robots(0, 10_000), 0
		step := func(what string, want bool, sets map[string]snapshot.Set) {
			t.Helper()
			save(t, d, sets)
			for range 40 { // all older segments are moved or removed
				time.Sleep(time.Hour) // fake clock
				save(t, d, map[string]snapshot.Set{"https://changes.example": answered(robots(saved, 9000))})
				saved++
			}
			if d.segments[0].number == 1 {
				t.Errorf("%s: the first segment is still there", what)
			}
			r, err := Read(dir, limits.Keep)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := r.Body(snapshot.Digest(shared)); d.kept(shared) != want || (err == nil) != want {
				t.Errorf("%s: the body is kept: %v, and read beside: %v", what, d.kept(shared), err)
			}
			sound(t, d)
			d.Close()
			d = openFor(t, dir, limits)
		}
		set := answered(shared)
		step("two sets name it", true, map[string]snapshot.Set{origin(1): set, origin(2): set})
		loaded(t, d, origin(1), set)
		step("one set names it", true, map[string]snapshot.Set{origin(1): answered("other")})
		loaded(t, d, origin(2), set)
		save(t, d, map[string]snapshot.Set{origin(2): answered("other")})
		time.Sleep(23 * time.Hour) // fake clock
		if !d.kept(shared) {
			t.Error("gone although an answer names it")
		}
		step("another set names it", true, map[string]snapshot.Set{origin(3): set})
		step("nothing names it", false, map[string]snapshot.Set{origin(3): {}})
	})
}

// TestUsage follows the sets, also across a restart. Copies and tdmrep.json files are no origins.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	check := func(origins int64) {
		t.Helper()
		if got, want := d.Usage(), (Usage{Origins: origins, Bytes: onDisk(t, dir), Bound: ample.Bytes}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	check(0)
	for n := range 3 {
		sets := map[string]snapshot.Set{}
		for _, scope := range []snapshot.Scope{
			{Origin: "https://a.example"}, {Origin: origin(n), Asker: "Bot"}, {Origin: origin(n), TDMRep: true},
		} {
			sets[scope.Key()] = answered(robots(n, 900))
		}
		save(t, d, sets)
	}
	check(4)
	d.Close()
	d = openFor(t, dir, ample)
	check(4)
	save(t, d, map[string]snapshot.Set{"https://a.example": {}})
	check(3)
}

// TestEngine: an engine does not fetch again what the engine before it has on disk.
func TestEngine(t *testing.T) {
	dir := t.TempDir()
	fetches := 0
	web := transport(func(r *http.Request) (*http.Response, error) {
		fetches++
		w := httptest.NewRecorder()
		switch r.URL.Host {
		case "rules.example":
			w.WriteString("User-agent: *\nDisallow: /private/\n")
		case "blocked.example":
			w.WriteHeader(403)
		case "dead.example":
			return nil, errors.New("dead")
		default:
			w.WriteHeader(404)
		}
		return w.Result(), nil
	})
	for run := range 3 {
		d := openFor(t, dir, ample)
		e, err := policy.New(policy.Config{Robots: policy.DefaultRobots(), Transport: web, Store: d, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range map[string]policy.Reason{
			"rules.example": policy.ByRule, "blocked.example": policy.IsUnavailable, "none.example": policy.IsUnavailable, "dead.example": policy.IsUnreachable,
		} {
			target, err := canonical.ParseURL("https://" + host + "/private/")
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Decide(t.Context(), policy.Request{Target: target, Crawler: &policy.Crawler{Mode: policy.Enforce}, UserAgent: "Bot/1.0"})
			if err != nil || got.Reason != want {
				t.Errorf("run %d: %s: got %s, %v, want %s", run, host, got.Reason, err, want)
			}
		}
		e.Close()
		d.Close()
		if fetches != 4 {
			t.Errorf("run %d: %d fetches, want 4", run, fetches)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
