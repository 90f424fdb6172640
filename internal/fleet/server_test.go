package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/pace"
)

const testName = "robotsgate:{abc}"

// A testServer is a server that can be put into states that no gate brings about.
type testServer interface {
	server
	flush()
	setWrong(key string)
}

// A realServer is a process.
type realServer struct {
	server
	process *gatetest.RedisServer
}

func (r realServer) flush() { r.process.Command("FLUSHALL") }

func (r realServer) setWrong(key string) {
	key = strings.Replace(key, "fleet:", "robotsgate:{fleet}:", 1)
	r.process.Command("DEL", key)
	r.process.Command("RPUSH", key, "of another program")
}

// newRealServer starts a server and connects to it.
func newRealServer(t *testing.T, args ...string) realServer {
	t.Helper()
	process := gatetest.Redis(t, args...)
	return realServer{mustDial(t, process.Address()), process}
}

func mustDial(t *testing.T, address string) server {
	t.Helper()
	s, err := dial(t.Context(), address, nil, "robotsgate", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// TestServers runs the same tests over a server in memory and a real one.
func TestServers(t *testing.T) {
	t.Run("memory", func(t *testing.T) { testServers(t, newMemoryServer()) })
	t.Run("redis", func(t *testing.T) { testServers(t, newRealServer(t)) })
}

func testServers(t *testing.T, s testServer) {
	for name, test := range map[string]func(*testing.T, testServer){
		"snapshots":    testSnapshots,
		"leases":       testLeases,
		"reservations": testReservations,
		"given back":   testGivenBack,
		"limits":       testLimits,
		"notices":      testNotices,
		"gates":        testGates,
		"wrong types":  testWrongTypes,
		"expiry":       testExpiry,
	} {
		s.flush()
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func testSnapshots(t *testing.T, s testServer) {
	ctx := testContext(t)
	wantLoad := func(withBody bool, set, body string) int64 {
		t.Helper()
		got, err := s.load(ctx, testName, withBody)
		if err != nil || string(got.sealed) != set || string(got.body) != body || (got.version == 0) != (set == "") {
			t.Fatalf("load(%t): got %q, %q, version %d, %v, want %q, %q", withBody, got.sealed, got.body, got.version, err, set, body)
		}
		if d := time.Since(time.UnixMicro(got.now.Microseconds())); d.Abs() > time.Minute {
			t.Errorf("the store's time is %v ago", d)
		}
		return got.version
	}
	wantSave := func(version int64, v value, want bool) {
		t.Helper()
		saved, err := s.save(ctx, testName, version, v, time.Hour)
		if saved != want || err != nil {
			t.Fatalf("save at version %d: got %t, %v, want %t", version, saved, err, want)
		}
	}
	wantLoad(true, "", "")
	wantSave(7, value{[]byte("r0"), nil}, false)
	wantSave(0, value{[]byte("r1"), []byte("b\x00\r\n1")}, true)
	v1 := wantLoad(true, "r1", "b\x00\r\n1")
	wantLoad(false, "r1", "")
	wantSave(0, value{[]byte("r2"), nil}, false)
	wantSave(v1, value{[]byte("r2"), nil}, true)
	v2 := wantLoad(true, "r2", "b\x00\r\n1")
	if v2 <= v1 {
		t.Errorf("version %d follows version %d", v2, v1)
	}
	wantSave(v1, value{[]byte("r3"), nil}, false)
	wantSave(v2, value{[]byte("r3"), []byte{}}, true)
	wantLoad(true, "r3", "")

	s.flush()
	wantLoad(true, "", "")
	wantSave(v2, value{[]byte("r4"), nil}, false)
	wantSave(0, value{[]byte("r4"), nil}, true)
	if v := wantLoad(true, "r4", ""); v <= v2 {
		t.Errorf("after the loss of all values, version %d follows version %d", v, v2)
	}
}

func testLeases(t *testing.T, s testServer) {
	ctx := testContext(t)
	acquire := func() int64 {
		t.Helper()
		fence, err := s.acquire(ctx, testName, "gate-1", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return fence
	}
	wantRenew := func(fence int64, want bool) {
		t.Helper()
		if renewed, err := s.renew(ctx, testName, fence, time.Minute); renewed != want || err != nil {
			t.Fatalf("renew: got %t, %v, want %t", renewed, err, want)
		}
	}
	first := acquire()
	if first <= 0 {
		t.Fatalf("the first lease has the number %d", first)
	}
	if again := acquire(); again != 0 {
		t.Fatalf("the lease was given twice: %d", again)
	}
	wantRenew(first, true)
	wantRenew(first+1, false)
	// A lease alone is no snapshot, and a snapshot does not change the lease.
	if got, err := s.load(ctx, testName, true); err != nil || got.version != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if saved, err := s.save(ctx, testName, 0, value{[]byte("r"), nil}, time.Hour); !saved || err != nil {
		t.Fatalf("got %t, %v", saved, err)
	}
	if err := s.release(ctx, testName, first+1); err != nil || acquire() != 0 {
		t.Fatalf("a lease with another number was ended, or %v", err)
	}
	if err := s.release(ctx, testName, first); err != nil {
		t.Fatal(err)
	}
	wantRenew(first, false)
	second := acquire()
	if second <= first {
		t.Errorf("lease %d follows lease %d", second, first)
	}
	s.flush()
	if third := acquire(); third <= second {
		t.Errorf("after the loss of all values, lease %d follows lease %d", third, second)
	}
}

// near reports whether a wait is as long as wanted, less the time that a test has needed.
func near(got, want time.Duration) bool { return got <= want && got > want-5*time.Second }

func testReservations(t *testing.T, s testServer) {
	ctx := testContext(t)
	const minute = time.Minute
	for i, step := range []struct {
		r        pace.Reservation
		wait     time.Duration
		reserved bool
	}{
		{pace.Reservation{Interval: minute, Since: -1}, 0, true},
		{pace.Reservation{Interval: minute, Since: -1, Longest: time.Hour}, minute, true},
		{pace.Reservation{Interval: minute, Since: -1, Longest: time.Hour}, 2 * minute, true},
		{pace.Reservation{Interval: 10 * minute, Since: -1, Longest: 12 * minute}, 12 * minute, true},
		{pace.Reservation{Interval: minute, Since: -1, Longest: 12 * minute}, 13 * minute, false},
		{pace.Reservation{Interval: minute, Since: -1, Longest: time.Hour}, 13 * minute, true},
		{pace.Reservation{Interval: 0, Since: -1, Longest: time.Hour}, 13 * minute, true},
		{pace.Reservation{Interval: 20 * minute, Since: 10 * minute, Longest: time.Hour}, 33 * minute, true},
	} {
		step.r.Memory = time.Hour
		g, err := s.reserve(ctx, testName, step.r)
		if err != nil || !near(g.Wait, step.wait) || (g.Start != 0) != step.reserved {
			t.Errorf("step %d: got %+v, %v, want a wait of %v, reserved %t", i, g, err, step.wait, step.reserved)
		}
	}
	// A gate's own start counts where the store knows of none, or of an earlier one.
	name := testName + "2"
	for i, step := range []struct {
		interval, since, wait time.Duration
	}{
		{10 * minute, 4 * minute, 6 * minute},
		{10 * minute, minute, 16 * minute},
		{0, 0, 16 * minute},
		{10 * minute, 0, 26 * minute},
	} {
		g, err := s.reserve(ctx, name, pace.Reservation{Interval: step.interval, Since: step.since, Longest: time.Hour, Memory: time.Hour})
		if err != nil || !near(g.Wait, step.wait) || g.Start == 0 {
			t.Errorf("own start, step %d: got %+v, %v, want a wait of %v", i, g, err, step.wait)
		}
	}
	// A start that is far away stays, however short a request may wait.
	if g, err := s.reserve(ctx, name, pace.Reservation{Since: -1, Memory: minute}); err != nil || g.Start != 0 || !near(g.Wait, 26*minute) {
		t.Errorf("a start at once: got %+v, %v", g, err)
	}
	// A gate's own start counts also if nothing is reserved.
	name = testName + "3"
	for i, want := range []pace.Grant{{}, {Wait: 9 * minute}} {
		g, err := s.reserve(ctx, name, pace.Reservation{Interval: time.Duration(i) * 10 * minute, Since: minute, Longest: -1, Memory: time.Hour})
		if err != nil || g.Start != 0 || !near(g.Wait, want.Wait) {
			t.Errorf("nothing reserved, step %d: got %+v, %v, want %+v", i, g, err, want)
		}
	}
	if g, err := s.reserve(ctx, name, pace.Reservation{Interval: 10 * minute, Since: -1, Longest: time.Hour, Memory: time.Hour}); err != nil || !near(g.Wait, 9*minute) {
		t.Errorf("after that: got %+v, %v", g, err)
	}
}

// testLimits: so many starts are granted in a window, those of a step are counted together, and a gate's own count
// where the store knows of fewer.
func testLimits(t *testing.T, s testServer) {
	ctx := testContext(t)
	hour := pace.Reservation{Interval: time.Hour, Starts: 3, Step: time.Hour / 64, Since: -1, Memory: time.Hour}
	own := hour
	own.Own = 2
	many := hour
	many.Starts = 1000
	for name, steps := range map[string][]struct {
		r    pace.Reservation
		want pace.Grant // Start: whether there is one
	}{
		"1": {{hour, pace.Grant{Start: 1, Left: 2}}, {hour, pace.Grant{Start: 1, Left: 1}}, {hour, pace.Grant{Start: 1}}, {hour, pace.Grant{Wait: time.Hour}}, {many, pace.Grant{Start: 1, Left: 996}}},
		"2": {{own, pace.Grant{Start: 1}}, {hour, pace.Grant{Wait: time.Hour}}},
		"3": {{hour, pace.Grant{Start: 1, Left: 2}}, {own, pace.Grant{Start: 1}}, {own, pace.Grant{Wait: time.Hour}}},
	} {
		for i, step := range steps {
			g, err := s.reserve(ctx, testName+name, step.r)
			if err != nil || !near(g.Wait, step.want.Wait) || (g.Start != 0) != (step.want.Start != 0) || g.Left != step.want.Left {
				t.Errorf("%s, step %d: got %+v, %v, want %+v", name, i, g, err, step.want)
			}
		}
	}
}

func testGivenBack(t *testing.T, s testServer) {
	ctx := testContext(t)
	const minute = time.Minute
	reserve := func(wait time.Duration) time.Duration {
		t.Helper()
		g, err := s.reserve(ctx, testName, pace.Reservation{Interval: 10 * minute, Since: -1, Longest: 10 * time.Hour, Memory: time.Hour})
		if err != nil || !near(g.Wait, wait) || g.Start == 0 {
			t.Fatalf("got %+v, %v, want a wait of %v", g, err, wait)
		}
		return g.Start
	}
	giveBack := func(start time.Duration) {
		t.Helper()
		g, err := s.reserve(ctx, testName, pace.Reservation{Since: -1, Longest: -1, Memory: time.Hour, Returned: start})
		if g.Start != 0 || err != nil {
			t.Fatalf("giving back: got %+v, %v, want no start", g, err)
		}
	}
	giveBack(1234567) // of nothing
	giveBack(reserve(0))
	reserve(0) // as if there had been none
	a, b := reserve(10*minute), reserve(20*minute)
	giveBack(a) // not the last: its place stays empty
	c := reserve(30 * minute)
	giveBack(c)
	giveBack(c)
	giveBack(b)
	reserve(10 * minute)

	// Of many starts only some are remembered: the oldest of them stays.
	var starts []time.Duration
	for i := range 10 {
		starts = append(starts, reserve(time.Duration(i+2)*10*minute))
	}
	for _, start := range slices.Backward(starts) {
		giveBack(start)
	}
	reserve(50 * minute)
}

func testNotices(t *testing.T, s testServer) {
	ctx := testContext(t)
	last := firstNotice
	want := func(want ...string) {
		t.Helper()
		got, after, err := s.notices(ctx, last)
		if err != nil || after == "" {
			t.Fatalf("got %q, %v", after, err)
		}
		last = after
		if !slices.EqualFunc(got, want, func(a []byte, b string) bool { return string(a) == b }) {
			t.Fatalf("got %d notices %.50q, want %d %.50q", len(got), got, len(want), want)
		}
	}
	notify := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if err := s.notify(ctx, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	want()
	notify("a", "b\x00\r\n")
	want("a", "b\x00\r\n")
	want()
	notify("c")
	want("c")
	s.flush()
	want()
	notify("d")
	want("d")
	// The position is after the last notice of the store, which has lost some.
	last = "99999999999999999-0"
	want("d")
	if err := s.notify(ctx, make([]byte, maxNotice+1)); !errors.Is(err, errTooLong) {
		t.Errorf("a notice beyond the bound: got %v", err)
	}
	many := make([]string, 1000+10)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	notify(many...)
	want(many[10:]...)
}

func testGates(t *testing.T, s testServer) {
	ctx := testContext(t)
	want := func(id, text, before string, keep time.Duration, want ...string) {
		t.Helper()
		gates, now, err := s.announce(ctx, id, []byte(text), keep)
		if err != nil || time.Since(now).Abs() > time.Minute {
			t.Fatalf("got the time %v, %v", now, err)
		}
		if got := slices.Sorted(maps.Keys(gates)); !slices.Equal(got, want) || string(gates[id]) != before {
			t.Fatalf("got %v, %q, want %v, %q", got, gates[id], want, before)
		}
	}
	want("gate-1", "one\r\n\x00", "", time.Minute, "gate-1")
	want("gate-2", "two", "", time.Minute, "gate-1", "gate-2")
	want("gate-1", "one again", "one\r\n\x00", time.Minute, "gate-1", "gate-2")
	want("gate-2", "", "two", time.Minute, "gate-1", "gate-2") // it leaves
	want("gate-1", "one", "one again", time.Minute, "gate-1")
	<-time.After(3 * time.Millisecond)
	want("gate-3", "three", "", time.Millisecond, "gate-3")
	if _, _, err := s.announce(ctx, "gate-4", make([]byte, maxAnnouncement+1), time.Minute); !errors.Is(err, errTooLong) {
		t.Errorf("an announcement beyond the bound: got %v", err)
	}
}

// testWrongTypes gives keys values of other programs: reads say so, and the next write replaces them.
func testWrongTypes(t *testing.T, s testServer) {
	ctx := testContext(t)
	load := func() error { _, err := s.load(ctx, testName, true); return err }
	notices := func() error { _, _, err := s.notices(ctx, firstNotice); return err }
	announce := func() error { _, _, err := s.announce(ctx, "gate-1", []byte("a"), time.Minute); return err }
	reserve := func() error {
		g, err := s.reserve(ctx, testName, pace.Reservation{Interval: time.Minute, Since: -1, Memory: time.Minute})
		if err == nil && g.Start == 0 {
			return errors.New("no start was reserved")
		}
		return err
	}
	for _, c := range []struct {
		key         string
		read, write func() error
	}{
		{testName + ":s", load, func() error {
			saved, err := s.save(ctx, testName, 0, value{[]byte("r"), nil}, time.Minute)
			if err == nil && !saved {
				return errors.New("nothing was saved")
			}
			return err
		}},
		{testName + ":l", nil, func() error {
			if renewed, err := s.renew(ctx, testName, 1, time.Minute); renewed || err != nil {
				return fmt.Errorf("renew: %t, %v", renewed, err)
			}
			if err := s.release(ctx, testName, 1); err != nil {
				return err
			}
			fence, err := s.acquire(ctx, testName, "gate-1", time.Minute)
			if err == nil && fence == 0 {
				return errors.New("no lease")
			}
			return err
		}},
		{testName + ":p", nil, reserve},
		{"fleet:n", notices, func() error { return s.notify(ctx, []byte("a")) }},
		{"fleet:g", nil, announce},
	} {
		s.setWrong(c.key)
		if c.read != nil {
			if err := c.read(); !errors.Is(err, errWrongType) {
				t.Errorf("%s: reading got %v, want errWrongType", c.key, err)
			}
		}
		if err := c.write(); err != nil {
			t.Errorf("%s: writing: %v", c.key, err)
		}
		if c.read != nil {
			if err := c.read(); err != nil {
				t.Errorf("%s: after a write: %v", c.key, err)
			}
		}
	}
}

func testExpiry(t *testing.T, s testServer) {
	ctx := testContext(t)
	eventually := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !done(); <-time.After(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s does not end", what)
			}
		}
	}
	const short = 30 * time.Millisecond
	if saved, err := s.save(ctx, testName, 0, value{[]byte("r"), []byte("b")}, short); !saved || err != nil {
		t.Fatalf("got %t, %v", saved, err)
	}
	eventually("the snapshot", func() bool {
		got, err := s.load(ctx, testName, true)
		return err == nil && got.version == 0 && bytes.Equal(got.body, nil)
	})
	fence, err := s.acquire(ctx, testName, "gate-1", short)
	if fence == 0 || err != nil {
		t.Fatalf("got %d, %v", fence, err)
	}
	eventually("the lease", func() bool {
		next, err := s.acquire(ctx, testName, "gate-2", time.Minute)
		return err == nil && next > fence
	})
}
