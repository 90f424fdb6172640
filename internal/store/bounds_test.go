package store

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"robotsgate/internal/gatetest"
	"robotsgate/policy"
)

// openFor returns a store with these limits; it is closed at the end of the test.
func openFor(t *testing.T, dir string, limits Limits) *Disk {
	t.Helper()
	d, err := Open(dir, limits, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// answered returns the record of an origin that has just answered with a body.
func answered(body string) policy.Record {
	s := &policy.Snapshot{Status: 200, Fetched: time.Now(), SHA256: policy.Digest(body)}
	return policy.Record{Good: s, Last: s, Body: []byte(body)}
}

// down returns rec after its origin has just failed.
func down(rec policy.Record, status int) policy.Record {
	rec.Last = &policy.Snapshot{Status: status, Error: fmt.Sprint(time.Now()), Fetched: time.Now()}
	return rec
}

// robots returns a body of this size that is different for each n.
func robots(n, size int) string {
	b := fmt.Sprintf("User-agent: *\nDisallow: /%d\n", n)
	return b + strings.Repeat("#", size-len(b))
}

// onDisk returns the space of a folder: the blocks of its files and folders, in bytes,
// and their lengths.
func onDisk(t *testing.T, dir string) (blocks, length int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		blocks += allocated(info)
		length += info.Size()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return blocks, length
}

// kept reports whether the bytes of a body are on disk.
func (d *Disk) kept(body string) bool {
	_, err := d.bodies.read(policy.Digest(body))
	return err == nil
}

// sound compares everything that is derived from records and history with them.
func sound(t *testing.T, d *Disk) {
	t.Helper()
	d.writing.Lock()
	defer d.writing.Unlock()
	names := map[string]uint32{}
	drops := map[string]bool{}
	used, err := walk(d.db, filepath.Join(d.bodies.dir, "..", indexFile))
	if err != nil {
		t.Fatal(err)
	}
	if used != d.used {
		t.Errorf("the index holds %+v, and %+v are counted", used, d.used)
	}
	d.db.View(func(tx *bbolt.Tx) error {
		tx.Bucket(recordsBucket).ForEach(func(key, value []byte) error {
			r, err := unmarshal[row](key, value)
			if err != nil {
				t.Error(err)
			}
			names[r.digest()]++
			drops[string(dropKey(fetched, r.newest(), key))] = true
			return nil
		})
		tx.Bucket(historyBucket).ForEach(func(key, value []byte) error {
			a, err := unmarshal[Answer](key, value)
			if err != nil {
				t.Error(err)
			}
			names[a.Snapshot.SHA256]++
			drops[string(dropKey(superseded, a.To, key))] = true
			return nil
		})
		delete(names, "")
		got := map[string]uint32{}
		tx.Bucket(bodiesBucket).ForEach(func(key, value []byte) error {
			n, err := openRefs(key, value)
			digest := fmt.Sprintf("%x", key)
			got[digest] = n.count
			path, _ := d.bodies.path(digest)
			if info, statErr := os.Stat(path); err != nil || statErr != nil || info.Size() != n.size {
				t.Errorf("%s: %d bytes, %v, %v", path, n.size, err, statErr)
			}
			return nil
		})
		if !maps.Equal(got, names) {
			t.Errorf("counted names of bodies: got %v, want %v", got, names)
		}
		n := 0
		tx.Bucket(dropsBucket).ForEach(func(key, _ []byte) error {
			n++
			if !drops[string(key)] {
				t.Errorf("%q has no origin in records or history", key)
			}
			return nil
		})
		if n != len(drops) {
			t.Errorf("%d times for %d rows", n, len(drops))
		}
		return nil
	})
	if files := bodyFiles(t, filepath.Dir(d.bodies.dir)); len(files) != len(names) {
		t.Errorf("%d files for %d bodies", len(files), len(names))
	}
}

// TestFlood: a flood of random hosts stays within bounds at any time, and the last
// ones are kept.
func TestFlood(t *testing.T) {
	const most, atOnce = 4 << 20, 2000
	for _, flood := range []struct {
		of     string
		hosts  int
		record func(i int) policy.Record
	}{
		{"rules", gatetest.Size(3*atOnce, 10*atOnce), func(i int) policy.Record { return answered(robots(i, 1500)) }},
		{"failures", 3 * atOnce, func(int) policy.Record { return down(policy.Record{}, 503) }},
		{"both", 3 * atOnce, func(i int) policy.Record {
			if i%2 == 0 {
				return down(policy.Record{}, 404)
			}
			return answered(robots(i, 100))
		}},
	} {
		t.Run(flood.of, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				d := openFor(t, dir, Limits{Keep: time.Hour, Bytes: most})
				defer d.Close()
				var blocks, length int64
				for i := 0; i < flood.hosts; {
					records := map[string]policy.Record{}
					for range atOnce {
						time.Sleep(time.Millisecond)
						records[origin(i)] = flood.record(i)
						i++
					}
					save(t, d, records)
					b, n := onDisk(t, dir)
					blocks, length = max(blocks, b), max(length, n)
				}
				t.Logf("at most %d KiB on disk, %d KiB by size", blocks>>10, length>>10)
				if slack := int64(1 << 20); blocks > most+slack || length > most+slack {
					t.Errorf("%d bytes on disk, %d by size, want %d and at most %d more", blocks, length, most, slack)
				}
				left := 0
				for i := range flood.hosts {
					_, ok := d.Load(t.Context(), origin(i))
					if ok {
						left++
					} else if left > 0 {
						t.Errorf("%d is gone, and one before is not", i)
					}
				}
				t.Logf("%d records are left", left)
				if left < 400 {
					t.Errorf("%d records are left", left)
				}
				sound(t, d)
			})
		})
	}
}

// TestSupersededGoFirst: superseded answers are dropped first, the oldest before the others.
func TestSupersededGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), Limits{Keep: 10000 * time.Hour, Bytes: 4 << 20})
		defer d.Close()
		const size = 100_000
		for i := range 100 {
			time.Sleep(time.Hour)
			save(t, d, map[string]policy.Record{"https://old.example": answered(robots(0, 100)), "https://changes.example": answered(robots(i, size))})
			if i == 0 {
				continue
			}
			if !d.kept(robots(i-1, size)) {
				t.Fatalf("%d: the newest superseded answer is gone", i)
			}
		}
		first := -1
		for i := range 100 {
			if kept := d.kept(robots(i, size)); kept && first < 0 {
				first = i
			} else if !kept && first >= 0 {
				t.Errorf("%d is gone, and %d is not", i, first)
			}
		}
		if first < 50 || first > 90 {
			t.Errorf("the first that is kept is %d", first)
		}
		// An origin that was fetched long ago stays as long as there is something superseded.
		save(t, d, map[string]policy.Record{"https://first.example": answered("first")})
		for i := 1; i <= 15; i++ {
			time.Sleep(time.Hour)
			save(t, d, map[string]policy.Record{origin(i): answered(robots(1000+i, size))})
		}
		if _, ok := d.Load(t.Context(), "https://first.example"); !ok {
			t.Error("a record was dropped before a superseded answer")
		}
		for i := 16; i <= 40; i++ {
			time.Sleep(time.Hour)
			save(t, d, map[string]policy.Record{origin(i): answered(robots(1000+i, size))})
		}
		if history, err := d.History("https://changes.example"); err != nil || len(history) > 0 {
			t.Errorf("left: %v, %v", history, err)
		}
		if _, ok := d.Load(t.Context(), "https://first.example"); ok {
			t.Error("the record fetched longest ago is still there")
		}
		if _, ok := d.Load(t.Context(), origin(40)); !ok {
			t.Error("the newest record is gone")
		}
		sound(t, d)
	})
}

// TestKeep: superseded answers are dropped after Keep, also without requests.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), Limits{Keep: 48 * time.Hour, Bytes: 1 << 30})
		defer d.Close()
		const n = 3 * sweepRows
		for i := range 2 {
			records := map[string]policy.Record{}
			for o := range n {
				records[origin(o)] = answered(robots(n*i+o, 100))
			}
			save(t, d, records)
			time.Sleep(time.Hour)
		}
		superseded := func() (left int) {
			for o := range n {
				if d.kept(robots(o, 100)) {
					left++
				}
			}
			return left
		}
		time.Sleep(46 * time.Hour)
		if left := superseded(); left != n {
			t.Errorf("before keep ends, %d of %d are left", left, n)
		}
		time.Sleep(4 * time.Hour)
		if left := superseded(); left != 0 {
			t.Errorf("after keep, %d are left", left)
		}
		time.Sleep(1000 * time.Hour)
		for o := range n {
			if _, ok := d.Load(t.Context(), origin(o)); !ok {
				t.Fatalf("record %d, which is in force, is gone", o)
			}
		}
		sound(t, d)
	})
}

// TestKeepNothing: without Keep, superseded answers are dropped at once.
func TestKeepNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), Limits{Bytes: 1 << 30})
		defer d.Close()
		save(t, d, map[string]policy.Record{"https://a.example": answered("1")})
		save(t, d, map[string]policy.Record{"https://a.example": answered("2")})
		if d.kept("1") || !d.kept("2") {
			t.Errorf("kept the first: %v, the second: %v", d.kept("1"), d.kept("2"))
		}
	})
}

// TestSharedBodies: a body is kept as long as a row names it.
func TestSharedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), Limits{Keep: 24 * time.Hour, Bytes: 1 << 30})
		defer d.Close()
		a, b := "https://a.example", "https://b.example"
		save(t, d, map[string]policy.Record{a: answered("shared"), b: answered("shared")})
		time.Sleep(time.Hour)
		save(t, d, map[string]policy.Record{a: answered("another")})
		time.Sleep(26 * time.Hour) // a's has had its time
		if !d.kept("shared") {
			t.Error("gone although b's record names it")
		}
		save(t, d, map[string]policy.Record{b: answered("another")})
		time.Sleep(time.Hour)
		if !d.kept("shared") {
			t.Error("gone although b's history names it")
		}
		save(t, d, map[string]policy.Record{a: answered("shared")})
		time.Sleep(26 * time.Hour)
		if !d.kept("shared") {
			t.Error("gone although a's record names it again")
		}
		save(t, d, map[string]policy.Record{a: answered("another")})
		time.Sleep(26 * time.Hour)
		if d.kept("shared") {
			t.Error("still there although no row names it")
		}
		sound(t, d)
	})
}

// TestFlapping: the history of an origin that alternates is bounded, and its failures
// don't push out its rules.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), Limits{Keep: 100_000 * time.Hour, Bytes: 1 << 30})
		defer d.Close()
		const o = "https://a.example"
		good := answered("first")
		save(t, d, map[string]policy.Record{o: good})
		flap := func(n int, record func(i int) policy.Record) {
			d.writing.Lock()
			defer d.writing.Unlock()
			err := d.changeLocked(func(c *change) { // all in one, which is fast
				for i := range n {
					rec := record(i)
					rec.Last.Fetched = time.Now().Add(time.Duration(i) * time.Minute)
					_, err := d.bodies.write(rec.Good.SHA256, rec.Body)
					c.fail(err)
					c.save(o, rec)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		flap(2*maxAnswers, func(i int) policy.Record { return down(good, 500+i%2) })
		time.Sleep(2 * maxAnswers * time.Minute)
		flap(maxAnswers, func(i int) policy.Record { return answered(robots(i, 100)) })
		if !d.kept("first") {
			t.Error("pushed out too early")
		}
		time.Sleep(maxAnswers * time.Minute)
		save(t, d, map[string]policy.Record{o: answered("last"), "https://b.example": answered(robots(1, 100))})
		history, err := d.History(o)
		if err != nil || len(history) != 2*maxAnswers+1 {
			t.Errorf("%d answers, %v, want %d of each kind and the one in force", len(history), err, maxAnswers)
		}
		if d.kept("first") || d.kept(robots(0, 100)) == false {
			t.Error("another answer than the oldest is gone")
		}
		sound(t, d)
	})
}

// TestLowered: lower limits are applied in the background, in small steps.
func TestLowered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := openFor(t, dir, ample)
		records := map[string]policy.Record{}
		for i := range 2000 {
			records[origin(i)] = answered(robots(i, 2000))
		}
		save(t, d, records)
		d.Close()
		d = openFor(t, dir, Limits{Keep: time.Hour, Bytes: 4 << 20})
		defer d.Close()
		synctest.Wait() // the first step
		start := time.Now()
		for d.due() {
			before := len(bodyFiles(t, dir))
			time.Sleep(sweepPause)
			synctest.Wait()
			if gone := before - len(bodyFiles(t, dir)); gone > sweepRows {
				t.Fatalf("%d in one step", gone)
			}
			if time.Since(start) > time.Minute {
				t.Fatal("the limit is not applied")
			}
		}
		if n := len(bodyFiles(t, dir)); n < 400 || n > 1000 {
			t.Errorf("%d bodies of 4 KiB are left for 4 MiB", n)
		}
		sound(t, d)
	})
}

// TestClose: the sweep ends between two steps.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := openFor(t, dir, ample)
		records := map[string]policy.Record{}
		for i := range 4 * sweepRows {
			records[origin(i)] = down(policy.Record{}, 503)
		}
		save(t, d, records)
		d.Close()
		d = openFor(t, dir, Limits{Bytes: 1})
		synctest.Wait() // the first step
		start := time.Now()
		if err := d.Close(); err != nil || time.Since(start) > 0 {
			t.Errorf("%v, after %v", err, time.Since(start))
		}
		d = openFor(t, dir, ample)
		defer d.Close()
		left := 0
		for i := range records {
			if _, ok := d.Load(t.Context(), i); ok {
				left++
			}
		}
		if left != 3*sweepRows {
			t.Errorf("%d left of %d", left, len(records))
		}
	})
}

// TestAtOnce: a body may be dropped while it is being read, or while a row is about to name
// it.
func TestAtOnce(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	d, err := Open(dir, Limits{Bytes: 1 << 20}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	const changes = "https://changes.example"
	save(t, d, map[string]policy.Record{changes: answered(body(0))})
	done := make(chan struct{})
	var saving, reading sync.WaitGroup
	for g := range 2 {
		saving.Go(func() {
			for i := range 100 {
				records := map[string]policy.Record{changes: answered(body(i % 3))}
				for n := range 10 { // too many for all to stay
					records[fmt.Sprintf("https://%d-%d-%d.example", g, i, n)] = answered(body(10*i + n))
				}
				if err := d.Save(t.Context(), records); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				d.Load(t.Context(), changes) // which may have been evicted, but then nothing is said
				d.nudge()
			}
		})
	}
	saving.Wait()
	close(done)
	reading.Wait()
	if d.Close(); log.Len() > 0 {
		t.Errorf("log: %.500s", log.String())
	}
	d = openFor(t, dir, ample)
	sound(t, d)
}

// TestNudge: a save wakes the sweep if the store is still over its limits.
func TestNudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), ample)
		defer d.Close()
		records := map[string]policy.Record{}
		for i := range 2000 {
			records[origin(i)] = down(policy.Record{}, 503)
		}
		save(t, d, records)
		time.Sleep(time.Minute) // nothing is left to be looked for
		d.writing.Lock()
		d.limits.Bytes = 1 << 20
		d.writing.Unlock()
		save(t, d, map[string]policy.Record{"https://last.example": answered("last")})
		if !d.due() {
			t.Fatal("the save has left nothing to sweep")
		}
		time.Sleep(time.Minute)
		if d.due() {
			t.Error("it is not swept")
		}
		if _, ok := d.Load(t.Context(), "https://last.example"); !ok {
			t.Error("the newest is gone")
		}
	})
}

// TestLimits: the file of the index reduces the share of the bodies.
func TestLimits(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct{ bytes, index, bodies int64 }{
		{10240 * mib, 0, 10239 * mib},
		{10240 * mib, 1024 * mib, 9215 * mib},
		{10240 * mib, 8192 * mib, 5120 * mib},
		{4 * mib, 2 * mib, 2 * mib},
	} {
		l := Limits{Bytes: test.bytes}
		if got := l.bodies(test.index); got != test.bodies {
			t.Errorf("of %d bytes with an index of %d: got %d, want %d", test.bytes, test.index, got, test.bodies)
		}
		if rows := l.batch(); rows < 64 || rows > 2048 {
			t.Errorf("of %d bytes: batches of %d rows", test.bytes, rows)
		}
	}
}
