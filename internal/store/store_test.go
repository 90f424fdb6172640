package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

var ample = Limits{Keep: 100_000 * time.Hour, Bytes: 1 << 30}

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
	t.Cleanup(d.Close)
	return d, &log
}

// origin returns a different origin for each n.
func origin(n int) string { return fmt.Sprintf("https://%d.example", n) }

// answered returns the set of an origin that has just answered with a body.
func answered(body string) snapshot.Set { return answeredAt(time.Now().UTC(), body) }

func answeredAt(at time.Time, body string) snapshot.Set {
	s := &snapshot.Snapshot{Status: 200, Fetched: at, SHA256: snapshot.Digest(body)}
	return snapshot.Set{Good: s, Last: s, Body: []byte(body)}
}

func save(t *testing.T, s snapshot.Store, key string, set snapshot.Set) {
	t.Helper()
	if err := s.Save(t.Context(), key, set); err != nil {
		t.Fatal(err)
	}
}

// loaded fails the test if a set is not found as it was saved.
func loaded(t *testing.T, s snapshot.Store, key string, want snapshot.Set) {
	t.Helper()
	got, ok := s.Load(t.Context(), key)
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if !ok || !bytes.Equal(a, b) || (got.Last == got.Good) != (want.Last == want.Good) {
		t.Errorf("%.100q: got %s, %v, want %s", key, a, ok, b)
	}
}

// absent fails the test if there is a set under a key.
func absent(t *testing.T, s snapshot.Store, key string) {
	t.Helper()
	if got, ok := s.Load(t.Context(), key); ok {
		t.Errorf("%s is found: %+v", key, got)
	}
}

// answers returns the statuses and the digests of an origin's history.
func answers(t *testing.T, x *Reader, origin string) (all []string) {
	t.Helper()
	history, err := x.History(origin)
	if err != nil {
		t.Error(err)
	}
	for _, a := range history {
		all = append(all, fmt.Sprint(a.Snapshot.Status, a.Snapshot.SHA256))
	}
	return all
}

// files returns the paths of the files of snapshots.
func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != "lock" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// aged sets when a file was saved.
func aged(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestForm: the file of an answer has the JSON of what was answered in its first line, and the text behind it. One that
// was superseded is kept beside it.
func TestForm(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := snapshot.Scope{Origin: "https://www.example.com", Asker: "Bot/1.0"}.Key()
	save(t, d, key, answeredAt(at, "User-agent: *\nDisallow: /\n"))
	save(t, d, key, answeredAt(at.Add(time.Hour), "# nothing\n"))
	var got strings.Builder
	for _, path := range files(t, dir) {
		text, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v, %v", path, err, statErr, info.Mode())
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&got, "%s\n%s", filepath.ToSlash(name), text)
	}
	want := regexp.MustCompile(`^snapshots/[0-9a-f]{2}/www\.example\.com_https_443_robots_[0-9a-f]{16}
\{"key":"https://www\.example\.com Bot/1\.0","good":\{.*"status":200.*\}\}
# nothing
snapshots/[0-9a-f]{2}/www\.example\.com_https_443_robots_[0-9a-f]{16}_20260102T030405\.000000000Z_[0-9a-f]{16}
\{"key":"https://www\.example\.com Bot/1\.0","from":"2026-01-02T03:04:05Z","to":"2026-01-02T04:04:05Z","snapshot":\{.*\}\}
User-agent: \*
Disallow: /
$`)
	if !want.MatchString(got.String()) {
		t.Errorf("got\n%s", &got)
	}
}

// TestHostileNames: whatever a key is, its file has a name of its own within the folder, and its host has it.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	long := strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("b", 61)
	origins := []string{
		"https://../../../etc/passwd", "https://..", "https://.", "https://.hidden", "https://a/b", "https://a\\b", "https://a\x00b", "https://a_b_c.example",
		"https://A.example", "https://a.example", "https://a.example:443000", "https://a%2eexample", "https://[2001:db8::1]", "https://[2001:db8::1]:8443",
		"https://" + long, "https://" + long[:252] + "c", "http://" + strings.Repeat("ü", 126) + ":65535", "", "https://lock", "https://%~ü",
	}
	for i, origin := range origins {
		for n := range 2 {
			save(t, d, origin, answered(fmt.Sprint(i, n)))
		}
	}
	for i, origin := range origins {
		if set, ok := d.Load(t.Context(), origin); !ok || string(set.Body) != fmt.Sprint(i, 1) {
			t.Errorf("%q: got %q, %v", origin, set.Body, ok)
		}
		if got := answers(t, d.Reader, origin); len(got) != 2 {
			t.Errorf("%q: got %q", origin, got)
		}
		_, authority, _ := strings.Cut(origin, "://")
		host, _ := canonical.SplitPort(authority)
		if got, err := d.HostOrigins(host); origin != "" && !slices.Contains(got, origin) || err != nil {
			t.Errorf("%q: its host has %q, %v", origin, got, err)
		}
	}
	inside := files(t, filepath.Join(dir, snapshotsDir))
	if all := files(t, filepath.Dir(dir)); len(all) != len(inside) || len(inside) != 2*len(origins) {
		t.Errorf("%d files, %d of them inside, want %d", len(all), len(inside), 2*len(origins))
	}
}

// TestRestart: an engine that starts anew decides by what is kept, without a request to an origin.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	fetches := 0
	web := transport(func(r *http.Request) (*http.Response, error) {
		fetches++
		w := httptest.NewRecorder()
		switch r.URL.Host {
		case "rules.example":
			w.WriteString("User-agent: *\nDisallow: /private/\n")
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
		for host, want := range map[string]policy.Reason{"rules.example": policy.ByRule, "none.example": policy.IsUnavailable, "dead.example": policy.IsUnreachable} {
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
		if fetches != 3 {
			t.Errorf("run %d: %d fetches, want 3", run, fetches)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDamage: a file that is not as it was saved is as if it were not there, is named once, and is replaced.
func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(path string, text []byte) error{
		"empty":        func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"cut":          func(path string, text []byte) error { return os.WriteFile(path, text[:40], 0o600) },
		"without text": func(path string, text []byte) error { return os.WriteFile(path, text[:len(text)-1], 0o600) },
		"zeroes":       func(path string, text []byte) error { return os.WriteFile(path, make([]byte, len(text)), 0o600) },
		"another text": func(path string, text []byte) error {
			return os.WriteFile(path, bytes.ReplaceAll(text, []byte("private"), []byte("changed")), 0o600)
		},
		"no answer": func(path string, _ []byte) error { return os.WriteFile(path, []byte("{}\n"), 0o600) },
		"another key": func(path string, text []byte) error {
			return os.WriteFile(path, bytes.Replace(text, []byte("1.example"), []byte("9.example"), 1), 0o600)
		},
		"gone": func(path string, _ []byte) error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d, log := openLogged(t, dir, ample)
			save(t, d, origin(1), answered("Disallow: /private/\n"))
			path := files(t, dir)[0]
			text, err := os.ReadFile(path)
			if err := errors.Join(err, damage(path, text)); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				absent(t, d, origin(1))
			}
			silent := name == "gone" || name == "no answer" || name == "another key"
			if got := strings.Count(log.String(), path); silent != (got == 0) || got > 1 {
				t.Errorf("log: %s", log)
			}
			if _, err := d.Body(origin(1), snapshot.Digest("Disallow: /private/\n")); (name == "without text" || name == "another text") != errors.Is(err, snapshot.ErrChanged) && name != "another key" {
				t.Errorf("its body: %v", err)
			}
			set := answered("new")
			save(t, d, origin(1), set)
			loaded(t, d, origin(1), set)
		})
	}
}

// TestKilledBetween: after a kill between the two files of a save, the answer before is in force still, and nowhere
// superseded. When another one takes its place it is superseded once.
func TestKilledBetween(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one, two, three := answeredAt(at, "one"), answeredAt(at.Add(time.Hour), "two"), answeredAt(at.Add(2*time.Hour), "three")
	save(t, d, origin(1), one)
	current := files(t, dir)[0]
	text, err := os.ReadFile(current)
	save(t, d, origin(1), two)
	if err := errors.Join(err, os.WriteFile(current, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	loaded(t, d, origin(1), one)
	history, err := d.History(origin(1))
	if err != nil || len(history) != 1 || !history[0].To.IsZero() {
		t.Errorf("got %+v, %v, want one answer without an end", history, err)
	}
	save(t, d, origin(1), three)
	if history, err = d.History(origin(1)); err != nil || len(history) != 2 || !history[0].To.Equal(at.Add(2*time.Hour)) {
		t.Errorf("got %+v, %v, want two answers, the first until the third one", history, err)
	}
}

// TestShared: of two gates in a folder each decides by what the other has saved, and no answer is missing in the
// history, however they save at once.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const each = 40
	var all sync.WaitGroup
	for gate := range 2 {
		d := openFor(t, dir, ample)
		for worker := range 2 {
			all.Go(func() {
				for i := range each {
					n := 10_000*gate + 1000*worker + i
					if err := d.Save(context.Background(), origin(1), answeredAt(at.Add(time.Duration(n)*time.Second), fmt.Sprint(n))); err != nil {
						t.Error(err)
					}
					if set, ok := d.Load(context.Background(), origin(1)); !ok || snapshot.Digest(set.Body) != set.Good.SHA256 {
						t.Errorf("got %+v, %v", set, ok)
					}
				}
			})
		}
	}
	all.Wait()
	r, err := Read(dir, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	got := answers(t, r, origin(1))
	slices.Sort(got)
	if got = slices.Compact(got); len(got) != 4*each {
		t.Errorf("%d answers, want %d", len(got), 4*each)
	}
}

// TestKeep: answers that were superseded for longer than Keep go, and those in force stay, however old they are. What a
// killed process has left goes too; files of other forms stay.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, Limits{Keep: 1000 * time.Hour, Bytes: ample.Bytes})
	d.Close() // the test walks itself
	now := time.Now().UTC()
	sets := []snapshot.Set{answeredAt(now.Add(-3000*time.Hour), "one"), answeredAt(now.Add(-2000*time.Hour), "two"), answeredAt(now.Add(-10*time.Hour), "three")}
	for _, set := range sets {
		save(t, d, origin(1), set)
	}
	one := snapshot.Answer{From: sets[0].Good.Fetched, Snapshot: sets[0].Good}
	aged(t, pastPath(d.setPath(origin(1)), one), now.Add(-2000*time.Hour))
	save(t, d, origin(2), answeredAt(now.Add(-3000*time.Hour), "old"))
	aged(t, d.setPath(origin(2)), now.Add(-3000*time.Hour))
	folder := filepath.Dir(files(t, dir)[0])
	old := now.Add(-2 * time.Hour)
	left, other := filepath.Join(folder, ".part"), filepath.Join(folder, "abcd")
	if err := errors.Join(os.WriteFile(left, nil, 0o600), os.Chtimes(left, old, old), os.WriteFile(other, nil, 0o600), os.Chtimes(other, old, old)); err != nil {
		t.Fatal(err)
	}
	d.walk(t.Context())
	if got := answers(t, d.Reader, origin(1)); len(got) != 2 || got[0] != "200"+sets[1].Good.SHA256 {
		t.Errorf("got %q, want the last two", got)
	}
	if got := answers(t, d.Reader, origin(2)); len(got) != 1 {
		t.Errorf("got %q, want the old one", got)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a killed process has left: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	d.limits.Keep = 0
	d.walk(t.Context())
	save(t, d, origin(1), answered("four"))
	if got := answers(t, d.Reader, origin(1)); len(got) != 1 {
		t.Errorf("without robots.keep: got %q", got)
	}
}

// TestBound: beyond the bound on bytes the oldest superseded answers go, and only when there are none left the sets that
// were saved longest ago. What is counted is what is there.
func TestBound(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	d.Close() // the test walks itself
	now := time.Now().UTC().Add(-time.Hour)
	for n := range 40 {
		save(t, d, origin(n), answeredAt(now.Add(time.Duration(n)*time.Second), "old"))
		save(t, d, origin(n), answeredAt(now.Add(time.Duration(1000+n)*time.Second), "new"))
		at := now.Add(time.Duration(n) * time.Second)
		aged(t, d.setPath(origin(n)), at)
		aged(t, pastPath(d.setPath(origin(n)), snapshot.Answer{From: at, Snapshot: answeredAt(at, "old").Good}), at.Add(1000*time.Second))
	}
	if got := d.Usage(); got.Origins != 40 || got.Bytes != 80*4096 {
		t.Errorf("got %+v", got)
	}
	for _, step := range []struct{ bound, past, current int }{{80, 40, 40}, {64, 16, 40}, {32, 0, 28}, {16, 0, 14}} {
		d.limits.Bytes = int64(step.bound) * 4096
		d.walk(t.Context())
		past, current := 0, 0
		for n := range 40 {
			for _, got := range answers(t, d.Reader, origin(n)) {
				if got == "200"+snapshot.Digest("old") {
					past++
				} else if current++; n < 40-step.current {
					t.Errorf("within %d: origin %d is kept", step.bound, n)
				}
			}
		}
		if past != step.past || current != step.current {
			t.Errorf("within %d: %d superseded answers and %d sets, want %+v", step.bound, past, current, step)
		}
		if got := d.Usage(); got.Origins != int64(current) || got.Bytes != int64(past+current)*4096 {
			t.Errorf("within %d: got %+v", step.bound, got)
		}
	}
}

// TestFlood: saves without end stay within the bound, but for what is saved during a walk.
func TestFlood(t *testing.T) {
	dir := t.TempDir()
	const bound = 200
	d := openFor(t, dir, Limits{Keep: ample.Keep, Bytes: bound * 4096})
	for n := range 4 * bound {
		save(t, d, origin(n), answered("x"))
	}
	for began := time.Now(); d.Usage().Bytes > bound*4096; { // a walk is under way
		if time.Since(began) > time.Minute {
			t.Fatalf("got %+v", d.Usage())
		}
		<-time.After(time.Millisecond)
	}
	if _, ok := d.Load(t.Context(), origin(4*bound-1)); !ok {
		t.Error("the last one is gone")
	}
	d.Close()
	if n := len(files(t, dir)); n > bound || n < bound/10 { // files of some milliseconds have the same time, and go together
		t.Errorf("%d files", n)
	}
}

// TestFiles: the first start says nothing of files of earlier forms, and they stay.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	old := map[string]string{"snapshots.db": "an index", "snapshots/ab/abcd": "a body", "snapshots/00000001.data": "a segment", "snapshots/00000001.index": "its index"}
	for name, content := range old {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	d := openFor(t, dir, Limits{Bytes: 1})
	d.walk(t.Context())
	if got := d.Usage(); got.Bytes != 0 {
		t.Errorf("got %+v", got)
	}
	for name, want := range old {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
