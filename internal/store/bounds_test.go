package store

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/snapshot"
)

// TestFlood: a flood of random hosts stays within bounds at any time, and the last ones are kept.
func TestFlood(t *testing.T) {
	const most = 1 << 20
	for _, flood := range []struct {
		of     string
		hosts  int
		atOnce int
		slack  int64 // what is saved at once
		set    func(i int) snapshot.Set
	}{
		{"rules", 2000, 25, 0, func(i int) snapshot.Set { return answered(robots(i, 1500)) }},
		{"rules at once", 2000, 200, 200 * 2000, func(i int) snapshot.Set { return answered(robots(i, 1500)) }},
		{"failures", 6000, 100, 0, func(int) snapshot.Set { return down(snapshot.Set{}, 503) }},
		{"both", 6000, 100, 0, func(i int) snapshot.Set {
			if i%2 == 0 {
				return down(snapshot.Set{}, 404)
			}
			return answered(robots(i, 100))
		}},
	} {
		t.Run(flood.of, func(t *testing.T) {
			dir := t.TempDir()
			d := openFor(t, dir, Limits{Keep: time.Hour, Bytes: most})
			largest := int64(0)
			for i := 0; i < flood.hosts; {
				sets := map[string]snapshot.Set{}
				for range flood.atOnce {
					sets[origin(i)] = flood.set(i)
					i++
				}
				save(t, d, sets)
				largest = max(largest, onDisk(t, dir))
			}
			if largest > most+flood.slack || largest < most/2 {
				t.Errorf("%d bytes on disk, want about %d and at most %d more", largest, most, flood.slack)
			}
			oldest, left := flood.hosts, 0
			for i := range flood.hosts {
				if _, ok := d.Load(t.Context(), origin(i)); ok {
					oldest = min(oldest, i)
					left++
				}
			}
			// The order within what is saved at once does not count, nor within what a crowded segment had.
			if left < 400 || left < flood.hosts-oldest-2*flood.atOnce {
				t.Errorf("%d records are left of the last %d", left, flood.hosts-oldest)
			}
			sound(t, d)
		})
	}
}

// TestSupersededGoFirst: superseded answers are dropped first, the oldest before the others; then the origins that were
// fetched longest ago.
func TestSupersededGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), Limits{Keep: 10_000 * time.Hour, Bytes: 1 << 20})
		defer d.Close()
		const size = 10_000
		save(t, d, map[string]snapshot.Set{"https://first.example": answered("first")})
		for i := range 200 {
			time.Sleep(time.Hour) // fake clock
			save(t, d, map[string]snapshot.Set{"https://changes.example": answered(robots(i, size)), origin(i): down(snapshot.Set{}, 503)})
			if i > 0 && !d.kept(robots(i-1, size)) {
				t.Fatalf("%d: the newest superseded answer is gone", i)
			}
		}
		first := -1
		for i := range 200 {
			if kept := d.kept(robots(i, size)); kept && first < 0 {
				first = i
			} else if !kept && first >= 0 {
				t.Errorf("%d is gone, and %d is not", i, first)
			}
		}
		if first < 100 || first > 175 {
			t.Errorf("the first that is kept is %d", first)
		}
		for i := range 200 {
			if _, ok := d.Load(t.Context(), origin(i)); !ok {
				t.Fatalf("record %d was dropped before a superseded answer", i)
			}
		}
		for i := 200; i < 450; i++ {
			time.Sleep(time.Hour) // fake clock
			save(t, d, map[string]snapshot.Set{origin(i): answered(robots(i, size))})
		}
		if history, err := d.History("https://changes.example"); err != nil || len(history) > 0 {
			t.Errorf("left: %v, %v", history, err)
		}
		absent(t, d, "https://first.example")
		for i := 449; i > 375; i-- {
			if _, ok := d.Load(t.Context(), origin(i)); !ok {
				t.Fatalf("record %d is gone, one of the newest", i)
			}
		}
		sound(t, d)
	})
}

// TestEntries: the number of sets and superseded answers is bounded, however small they are. The superseded answers go
// first, then the sets that were fetched longest ago.
func TestEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			most    = 1000
			atOnce  = 10
			changes = "https://changes.example"
		)
		d := openFor(t, t.TempDir(), Limits{Keep: 10_000 * time.Hour, Bytes: 2 << 20})
		defer d.Close()
		d.entries = most
		inSegment := int(d.limits.segment()) / 100 // the shortest lines are longer
		hosts := 0
		flood := func(n int) {
			for last := hosts + n; hosts < last; {
				time.Sleep(time.Minute) // fake clock
				sets := map[string]snapshot.Set{}
				for range atOnce {
					sets[origin(hosts)] = down(snapshot.Set{}, 503)
					hosts++
				}
				save(t, d, sets)
				if n := len(d.records); n > most+inSegment {
					t.Fatalf("%d hosts: there are %d entries", hosts, n)
				}
			}
		}
		for i := range 300 {
			time.Sleep(time.Minute) // fake clock
			save(t, d, map[string]snapshot.Set{changes: answered(robots(i, 20))})
		}
		flood(900)
		for i := range hosts {
			if _, ok := d.Load(t.Context(), origin(i)); !ok {
				t.Fatalf("record %d was dropped before a superseded answer", i)
			}
		}
		flood(3000)
		if history, err := d.History(changes); err != nil || len(history) > 0 {
			t.Errorf("left: %v, %v", history, err)
		}
		absent(t, d, changes)
		absent(t, d, origin(0))
		for i := hosts - 1; i > hosts-most/2; i-- {
			if _, ok := d.Load(t.Context(), origin(i)); !ok {
				t.Fatalf("record %d of %d is gone, one of the newest", i, hosts)
			}
		}
		if n := d.bytes(); n > d.limits.Bytes/2 {
			t.Errorf("%d bytes: the bound on bytes has counted, too", n)
		}
		sound(t, d)
	})
}

// TestFetchedLast: what was fetched last stays, also an origin that is fetched again and again, although segments with
// its earlier sets are moved and removed.
func TestFetchedLast(t *testing.T) {
	d := openFor(t, t.TempDir(), Limits{Bytes: 1 << 20})
	const n = 1600
	for i := 0; i < n; i += 20 {
		sets := map[string]snapshot.Set{}
		for j := range 20 {
			sets[origin(i+j)] = answered(robots(i+j, 700)) // once
			sets[origin(-1-j)] = answered(robots(-i-j, 700))
		}
		save(t, d, sets)
	}
	for j := range 20 {
		if _, ok := d.Load(t.Context(), origin(-1-j)); !ok {
			t.Errorf("%d is gone, which was just fetched", -1-j)
		}
	}
	for i := n - 200; i < n; i++ {
		if _, ok := d.Load(t.Context(), origin(i)); !ok {
			t.Errorf("%d is gone, one of the last %d", i, n)
		}
	}
	left := 0
	for i := range n / 4 {
		if _, ok := d.Load(t.Context(), origin(i)); ok {
			left++
		}
	}
	if left > n/8 { // a set that was moved with its segment counts as new
		t.Errorf("%d of the first %d are left", left, n/4)
	}
	t.Log(left)
	sound(t, d)
}

// TestKeep: superseded answers are dropped after Keep, at the next save or start, and sets that are in force stay.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, limits := t.TempDir(), Limits{Keep: 48 * time.Hour, Bytes: 1 << 30}
		d := openFor(t, dir, limits)
		defer func() { d.Close() }()
		const n = 200
		for i := range 2 {
			sets := map[string]snapshot.Set{}
			for o := range n {
				sets[origin(o)] = answered(robots(n*i+o, 100))
			}
			save(t, d, sets)
			time.Sleep(time.Hour) // fake clock
		}
		check := func(superseded int, when string) {
			t.Helper()
			left := 0
			for o := range n {
				history, err := d.History(origin(o))
				if err != nil {
					t.Fatal(err)
				}
				left += len(history) - 1
			}
			if left != superseded {
				t.Errorf("%s, %d superseded answers are kept, want %d", when, left, superseded)
			}
		}
		other := map[string]snapshot.Set{"https://other.example": answered("other")}
		time.Sleep(46 * time.Hour) // fake clock
		save(t, d, other)
		check(n, "before Keep")
		d.Close()
		d = openFor(t, dir, limits)
		check(n, "after a restart")
		time.Sleep(4 * time.Hour) // fake clock
		save(t, d, other)
		check(0, "after Keep")
		d.Close()
		d = openFor(t, dir, limits)
		check(0, "after a restart")
		time.Sleep(1000 * time.Hour) // fake clock
		save(t, d, other)
		for o := range n {
			if !d.kept(robots(n+o, 100)) {
				t.Fatalf("record %d, which is in force, is gone", o)
			}
		}
		sound(t, d)
	})
}

// TestKeepNothing: without Keep, superseded answers are dropped at once.
func TestKeepNothing(t *testing.T) {
	d := openFor(t, t.TempDir(), Limits{Bytes: 1 << 30})
	for _, body := range []string{"1", "2"} {
		save(t, d, map[string]snapshot.Set{origin(1): answered(body)})
	}
	if !d.kept("2") {
		t.Error("the file in force is gone")
	}
	if history, err := d.History(origin(1)); err != nil || len(history) != 1 {
		t.Errorf("got %v, %v", history, err)
	}
}

// TestFlapping: the history of an origin that alternates is bounded, and its failures don't push out its rules.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := openFor(t, dir, Limits{Keep: 100_000 * time.Hour, Bytes: 1 << 30})
		defer func() { d.Close() }()
		const o = "https://a.example"
		good := answered("first")
		save(t, d, map[string]snapshot.Set{o: good})
		for i := range maxAnswers + 50 {
			time.Sleep(time.Minute) // fake clock
			save(t, d, map[string]snapshot.Set{o: down(good, 500+i%2)})
		}
		for i := range maxAnswers {
			time.Sleep(time.Minute) // fake clock
			save(t, d, map[string]snapshot.Set{o: answered(robots(i, 100))})
		}
		if !d.kept("first") {
			t.Error("pushed out too early")
		}
		time.Sleep(time.Minute) // fake clock
		save(t, d, map[string]snapshot.Set{o: answered("last"), "https://b.example": answered(robots(0, 100))})
		for range 2 {
			history, err := d.History(o)
			if err != nil || len(history) != 2*maxAnswers+1 {
				t.Errorf("%d answers, %v, want %d of each kind and the one in force", len(history), err, maxAnswers)
			}
			named := func(body string) bool {
				return slices.ContainsFunc(history, func(a snapshot.Answer) bool { return a.Snapshot.SHA256 == snapshot.Digest(body) })
			}
			if named("first") || !named(robots(0, 100)) || !named(robots(1, 100)) {
				t.Error("another answer than the oldest is gone")
			}
			sound(t, d)
			d.Close()
			d = openFor(t, dir, Limits{Keep: 100_000 * time.Hour, Bytes: 1 << 30})
		}
	})
}

// TestLowered: a lower bound is kept from the next save on.
func TestLowered(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, ample)
	for i := 0; i < 4000; i += 500 {
		sets := map[string]snapshot.Set{}
		for n := range 500 {
			sets[origin(i+n)] = answered(robots(i+n, 2000))
		}
		save(t, d, sets)
	}
	d.Close()
	const bytes = 4 << 20
	d = openFor(t, dir, Limits{Keep: time.Hour, Bytes: bytes})
	for i := range 2 { // the first one ends the last segment
		save(t, d, map[string]snapshot.Set{"https://last.example": answered(fmt.Sprint(i))})
	}
	if n := onDisk(t, dir); n > bytes {
		t.Errorf("%d bytes on disk, want %d at most", n, bytes)
	}
	for i := range 100 {
		save(t, d, map[string]snapshot.Set{origin(4000 + i): answered(robots(i, 30_000))})
	}
	if n := onDisk(t, dir); n > bytes || n < bytes/2 {
		t.Errorf("%d bytes on disk, want %d", n, bytes)
	}
	sound(t, d)
}

// TestForgotten: a forgotten set does not come back when segments have been moved, nor after a restart.
// Forgetting what is not known takes no space.
func TestForgotten(t *testing.T) {
	dir, limits := t.TempDir(), Limits{Bytes: 512 << 10}
	d := openFor(t, dir, limits)
	const n = 60
	for i := range n { // they fill the first segment
		save(t, d, map[string]snapshot.Set{origin(i): answered(robots(i, 1000))})
	}
	churn := func(rounds int) {
		t.Helper()
		for i := range rounds {
			save(t, d, map[string]snapshot.Set{"https://changes.example": answered(robots(i, 9000))})
			if i%20 == 0 {
				sound(t, d)
				d.Close()
				d = openFor(t, dir, limits)
			}
			for o := 0; o < n; o += 4 {
				absent(t, d, origin(o))
			}
		}
	}
	for i := 0; i < n; i += 4 {
		save(t, d, map[string]snapshot.Set{origin(i): {}})
	}
	churn(100)
	again := answered("again")
	save(t, d, map[string]snapshot.Set{origin(4): again})
	loaded(t, d, origin(4), again)
	save(t, d, map[string]snapshot.Set{origin(4): {}})
	churn(50)
	if first, second := d.segments[0].number, d.segments[1].number; first != 1 || second < 5 {
		t.Errorf("the first segments are %d and %d; want the first, and others moved", first, second)
	}
	for i := range n {
		if i%4 != 0 {
			save(t, d, map[string]snapshot.Set{origin(i): answered("again")})
		}
	}
	churn(50)
	if first := d.segments[0].number; first < 5 {
		t.Errorf("segment %d is still there", first)
	}
	before := onDisk(t, dir)
	unknown := map[string]snapshot.Set{}
	for i := range 1000 {
		unknown[fmt.Sprintf("https://unknown-%d.example", i)] = snapshot.Set{}
	}
	save(t, d, unknown)
	if n := onDisk(t, dir); n > before {
		t.Errorf("%d bytes more", n-before)
	}
}

// TestForgottenGo: sets that were forgotten take neither memory nor the place of evidence, and are gone with the segments
// before them.
func TestForgottenGo(t *testing.T) {
	dir, limits := t.TempDir(), Limits{Bytes: 4 << 20}
	d := openFor(t, dir, limits)
	for i := range 2000 {
		save(t, d, map[string]snapshot.Set{origin(i): down(snapshot.Set{}, 503)})
		save(t, d, map[string]snapshot.Set{origin(i): {}})
	}
	if hosts, err := d.HostOrigins("1.example"); err != nil || len(hosts) > 0 {
		t.Errorf("got %v, %v", hosts, err)
	}
	for i := range 1000 {
		save(t, d, map[string]snapshot.Set{"https://changes.example": answered(robots(i, 9000))})
	}
	items := int64(0)
	for _, s := range d.segments {
		items += s.items
	}
	if n := len(d.records); n != 1 || items > 200 {
		t.Errorf("%d records, %d items", n, items)
	}
	sound(t, d)
}

// TestHistoryMemory: a history does not read the bodies of its answers.
func TestHistoryMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openFor(t, t.TempDir(), Limits{Keep: 1000 * time.Hour, Bytes: 1 << 30})
		defer d.Close()
		const n, size = 100, 512 << 10
		for i := range n {
			save(t, d, map[string]snapshot.Set{origin(1): answered(robots(i, size))})
			time.Sleep(time.Minute) // fake clock
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		history, err := d.History(origin(1))
		runtime.ReadMemStats(&after)
		if err != nil || len(history) != n || history[0].Bytes != size {
			t.Errorf("%d answers, %v", len(history), err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 10*size {
			t.Errorf("it takes %d bytes", took)
		}
	})
}

// TestHistoryAtOnce: no answer is missing while another takes its place.
func TestHistoryAtOnce(t *testing.T) {
	d := openFor(t, t.TempDir(), ample)
	const saves = 100
	var saved atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range saves {
			if err := d.Save(t.Context(), map[string]snapshot.Set{origin(1): answered(fmt.Sprint(i))}); err != nil {
				t.Error(err)
			}
			saved.Add(1)
		}
	}()
	for saved.Load() < saves {
		least := saved.Load()
		if history, err := d.History(origin(1)); err != nil || int64(len(history)) < least {
			t.Fatalf("%d answers of %d, %v", len(history), least, err)
		}
	}
	<-done
}

// TestSegmentFails: when a new segment can't be made, Save fails until it can.
func TestSegmentFails(t *testing.T) {
	dir := t.TempDir()
	d := openFor(t, dir, Limits{Bytes: 1 << 20})
	set := answered(robots(0, 100_000))
	save(t, d, map[string]snapshot.Set{origin(0): set})
	obstacle := d.dir + "/00000002.index"
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Save(t.Context(), map[string]snapshot.Set{origin(1): set}); err == nil {
			t.Error("no error")
		}
	}
	loaded(t, d, origin(0), set)
	absent(t, d, origin(1))
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	save(t, d, map[string]snapshot.Set{origin(1): set})
	loaded(t, d, origin(1), set)
	sound(t, d)
}

// TestConfirmedAtBound: at the bound sets make room also where the bodies are that they name, not only where their
// lines are.
func TestConfirmedAtBound(t *testing.T) {
	dir := t.TempDir()
	const bound = 1 << 20
	d := openFor(t, dir, Limits{Bytes: bound})
	for range 2 { // the second time only lines are written
		for i := range 60 {
			save(t, d, map[string]snapshot.Set{origin(i): answered(robots(i, 10_000))})
		}
	}
	var last snapshot.Set
	for i := 60; i < 200; i++ {
		last = answered(robots(i, 10_000))
		save(t, d, map[string]snapshot.Set{origin(i): last})
	}
	loaded(t, d, origin(199), last)
	if n := onDisk(t, dir); n > bound {
		t.Errorf("%d bytes on disk", n)
	}
	sound(t, d)
}
