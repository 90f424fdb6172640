package fleet

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
	"robotsgate/policy/pace"
)

// TestRedisCorrupt writes fields that no gate writes: readers treat the key as one of another type, or
// as if the field were not there, and writers replace it.
func TestRedisCorrupt(t *testing.T) {
	s := newRealServer(t)
	ctx := testContext(t)
	long := strings.Repeat("x", maxValue+1)
	for name, fields := range map[string][]string{
		"version is no number":   {"v", "one", "r", "x"},
		"version is negative":    {"v", "-1", "r", "x"},
		"version is a fraction":  {"v", "1.5", "r", "x"},
		"version is 0":           {"v", "0", "r", "x"},
		"version is too large":   {"v", "99999999999999999999", "r", "x"},
		"version is not exact":   {"v", "9007199254740993", "r", "x"},
		"no version":             {"r", "x"},
		"no record":              {"v", "1", "b", "x"},
		"the record is too long": {"v", "1", "r", long},
		"the body is too long":   {"v", "1", "r", "x", "b", long},
	} {
		t.Run(name, func(t *testing.T) {
			s.flush()
			s.do(t, "HSET", append([]string{testName + ":s"}, fields...)...)
			if _, err := s.load(ctx, testName, true); !errors.Is(err, errWrongType) {
				t.Errorf("load: got %v, want errWrongType", err)
			}
			if saved, err := s.save(ctx, testName, 0, value{[]byte("r"), nil}, time.Minute); !saved || err != nil {
				t.Fatalf("save: %t, %v", saved, err)
			}
			if got, err := s.load(ctx, testName, false); err != nil || string(got.sealed) != "r" {
				t.Errorf("load after save: %q, %v", got.sealed, err)
			}
		})
	}
}

// TestLongestBody: a body of maxBody bytes is kept, whatever the bounds of gates on a robots.txt are.
func TestLongestBody(t *testing.T) {
	s := newRealServer(t)
	sealer, err := newSealer(testKey, "robotsgate")
	if err != nil {
		t.Fatal(err)
	}
	body := sealer.seal(testName, kindBody, bytes.Repeat([]byte("x"), maxBody))
	if saved, err := s.save(testContext(t), testName, 0, value{[]byte("r"), body}, time.Minute); !saved || err != nil {
		t.Fatalf("save: %t, %v", saved, err)
	}
	if got, err := s.load(testContext(t), testName, true); err != nil || !bytes.Equal(got.body, body) {
		t.Errorf("load: %d bytes, %v", len(got.body), err)
	}
}

// do runs a command that is not one of the fleet's.
func (r realServer) do(t *testing.T, command string, args ...string) {
	t.Helper()
	client := r.server.(*redisServer).client
	if err := client.Do(t.Context(), client.B().Arbitrary(command).Args(args...).Build()).Error(); err != nil {
		t.Fatalf("%s %.100q: %v", command, args, err)
	}
}

// TestRedisCorruptKeys writes leases, clocks, notices and announcements that no gate writes.
func TestRedisCorruptKeys(t *testing.T) {
	s := newRealServer(t)
	ctx := testContext(t)
	for _, lease := range []string{"", "gate-1", "-1 gate-1", "12", strings.Repeat("x", 1<<16)} {
		s.do(t, "SET", testName+":l", lease)
		if renewed, err := s.renew(ctx, testName, 12, time.Minute); renewed || err != nil {
			t.Errorf("renew of %.20q: %t, %v", lease, renewed, err)
		}
		if fence, err := s.acquire(ctx, testName, "gate-1", time.Minute); fence == 0 || err != nil {
			t.Errorf("acquire over %.20q: %d, %v", lease, fence, err)
		}
	}
	future := strconv.FormatInt(time.Now().Add(30*time.Hour).UnixMicro(), 10)
	for _, clock := range []string{"", " ", "x", "-1", "-1 0", "1e999", "nan", "0 5", "5 x", future, "5 " + future, "9007199254740993", strings.Repeat("1 ", 5000)} {
		s.do(t, "SET", testName+":p", clock)
		g, err := s.reserve(ctx, testName, pace.Reservation{Interval: time.Hour, Since: -1, Longest: time.Hour, Memory: time.Hour})
		if err != nil || g.Wait != 0 || g.Start == 0 {
			t.Errorf("the clock %.30q: got %+v, %v, want a start at once", clock, g, err)
		}
	}

	stream := "robotsgate:{fleet}:n"
	s.do(t, "XADD", stream, "*", "n", strings.Repeat("x", maxNotice+1))
	s.do(t, "XADD", stream, "*", "other", "x")
	s.do(t, "XADD", stream, "*", "n", "x", "n", "y")
	if got, _, err := s.notices(ctx, "0-0"); len(got) != 0 || err != nil {
		t.Errorf("got the notices %.50q, %v", got, err)
	}
	s.do(t, "XADD", stream, "18446744073709551615-18446744073709551615", "n", "x")
	if err := s.notify(ctx, []byte("new")); err != nil {
		t.Errorf("notify in a stream without a free id: %v", err)
	}
	if got, _, err := s.notices(ctx, "18446744073709551615-18446744073709551615"); len(got) != 1 || err != nil {
		t.Errorf("got the notices %.50q, %v", got, err)
	}

	gates, now := "robotsgate:{fleet}:g", strconv.FormatInt(time.Now().UnixMilli(), 10)
	s.do(t, "HSET", gates, "no-time", "x", "not-a-time", "x x", "future", "9"+now+" x", "huge", now+" "+strings.Repeat("x", maxAnnouncement+1),
		strings.Repeat("i", maxGateID+1), now+" x", "good", now+" a b")
	for i := range 2 * maxGates {
		s.do(t, "HSET", gates, strconv.Itoa(i), now)
	}
	got, _, err := s.announce(ctx, "gate-1", []byte("one"), time.Hour)
	if err != nil || len(got) != 2 || string(got["good"]) != "a b" {
		t.Errorf("got the gates %.200q, %v", got, err)
	}
	for i := range 2 * maxGates {
		s.do(t, "HSET", gates, strconv.Itoa(i), now+" x")
	}
	if got, _, err = s.announce(ctx, "gate-1", []byte("one"), time.Hour); err != nil || len(got) > 1000 || string(got["gate-1"]) != "one" {
		t.Errorf("got %d gates, %v", len(got), err)
	}
}

// useAll calls each method of a server, each of which writes all that it can write.
func useAll(ctx context.Context, s server) error {
	_, err := s.save(ctx, testName, 0, value{[]byte("r"), []byte("b")}, time.Minute)
	add := func(_ any, e error) { err = errors.Join(err, e) }
	add(s.load(ctx, testName, true))
	add(s.save(ctx, testName+"-without-body", 0, value{[]byte("r"), nil}, time.Minute))
	fence, e := s.acquire(ctx, testName, "gate-1", time.Minute)
	add(fence, e)
	add(s.renew(ctx, testName, fence, time.Minute))
	add(nil, s.release(ctx, testName, fence))
	add(s.acquire(ctx, testName, "gate-1", time.Minute))
	g, e := s.reserve(ctx, testName, pace.Reservation{Interval: time.Minute, Since: time.Second, Longest: time.Hour, Memory: time.Hour})
	add(g, e)
	add(s.reserve(ctx, testName, pace.Reservation{Memory: time.Hour, Returned: g.Start}))
	g, e = s.reserve(ctx, testName+"-2", pace.Reservation{Memory: time.Hour, Since: -1})
	add(g, e)
	add(s.reserve(ctx, testName+"-2", pace.Reservation{Memory: time.Hour, Returned: g.Start}))
	add(s.reserve(ctx, testName+"-3", pace.Reservation{Memory: time.Hour, Since: -1}))
	add(nil, s.notify(ctx, []byte("a")))
	_, _, e = s.notices(ctx, firstNotice)
	add(nil, e)
	_, _, e = s.notices(ctx, "0-0")
	add(nil, e)
	_, _, e = s.announce(ctx, "gate-1", []byte("a"), time.Minute)
	add(nil, e)
	return err
}

func TestRedisTimesToLive(t *testing.T) {
	s := newRealServer(t)
	if err := useAll(testContext(t), s); err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields(s.process.Command("KEYS", "*"))
	if len(keys) < 8 {
		t.Errorf("got the keys %q, want those of all methods", keys)
	}
	for _, key := range keys {
		ttl, err := strconv.Atoi(s.process.Command("TTL", key))
		if err != nil || ttl < 1 || ttl > 25*60*60 {
			t.Errorf("%s lives for %d s, %v", key, ttl, err)
		}
	}
}

func TestRedisFailures(t *testing.T) {
	s := newRealServer(t, "--requirepass", "")
	ctx := testContext(t)
	_, err := dial(ctx, "redis://gate:s3cret@"+s.process.HostPort(), nil, "robotsgate", time.Second)
	if err == nil || !strings.HasPrefix(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a wrong password: got %v", err)
	}
	if err := useAll(ctx, s); err != nil {
		t.Fatal(err)
	}
	s.process.Command("CONFIG", "SET", "maxmemory", "1")
	if err := s.notify(ctx, []byte("a")); err == nil || !strings.HasPrefix(err.Error(), "OOM") || strings.Contains(err.Error(), "script") {
		t.Errorf("without memory: got %v", err)
	}
	s.process.Command("CONFIG", "SET", "maxmemory", "0")
	s.process.Command("REPLICAOF", "127.0.0.1", "1")
	if _, _, err := s.announce(ctx, "gate-1", nil, time.Minute); err == nil || !strings.HasPrefix(err.Error(), "READONLY") && !strings.HasPrefix(err.Error(), "MASTERDOWN") {
		t.Errorf("a replica: got %v", err)
	}
	s.process.Command("REPLICAOF", "NO", "ONE")
	if err := useAll(ctx, s); err != nil {
		t.Fatal(err)
	}
	s.process.Restart()
	if err := useAll(ctx, s); err != nil {
		t.Errorf("after a restart: %v", err) // the first call makes a connection
	}
	s.process.Kill()
	if err := useAll(ctx, s); err == nil {
		t.Error("calls of a server that is down succeed")
	}
	begin := time.Now()
	if _, err := dial(ctx, s.process.Address(), nil, "robotsgate", time.Second); err == nil || time.Since(begin) > 5*time.Second {
		t.Errorf("dial: got %v after %v", err, time.Since(begin))
	}
}

// TestRedisHung lets a server hang: calls end with their context, and close and dial do not wait.
func TestRedisHung(t *testing.T) {
	process := gatetest.Redis(t)
	cable := gatetest.NewCable(t, process.HostPort())
	s, err := dial(t.Context(), "redis://"+cable.HostPort(), nil, "robotsgate", 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := useAll(testContext(t), s); err != nil {
		t.Fatal(err)
	}
	cable.Hang()
	within := func(limit time.Duration, what string, f func()) {
		t.Helper()
		begin := time.Now()
		if f(); time.Since(begin) > limit {
			t.Errorf("%s took %v", what, time.Since(begin))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	within(3*time.Second, "a call", func() {
		if _, err := s.load(ctx, testName, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
	})
	within(3*time.Second, "dial", func() {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := dial(ctx, "redis://"+cable.HostPort(), nil, "robotsgate", 20*time.Second); err == nil {
			t.Error("dial succeeds")
		}
	})
	within(3*time.Second, "close", s.close)
	if _, err := s.load(testContext(t), testName, true); err == nil {
		t.Error("a call after close succeeds")
	}
}

// BenchmarkRedis makes calls of a real server, one at a time and from many goroutines.
func BenchmarkRedis(b *testing.B) {
	process := gatetest.Redis(b)
	s, err := dial(b.Context(), process.Address(), nil, "robotsgate", time.Second)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.close)
	if _, err := s.save(b.Context(), testName, 0, value{[]byte("r"), make([]byte, 10<<10)}, time.Hour); err != nil {
		b.Fatal(err)
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"reserve": func(ctx context.Context) error {
			_, err := s.reserve(ctx, testName, pace.Reservation{Interval: time.Microsecond, Since: -1, Longest: time.Hour, Memory: time.Hour})
			return err
		},
		"load": func(ctx context.Context) error { _, err := s.load(ctx, testName, true); return err },
	} {
		b.Run(name+"/one", func(b *testing.B) {
			for b.Loop() {
				if err := call(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/many", func(b *testing.B) {
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := call(b.Context()); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// TestEndlessLease: a lease that does not end by itself, or too late, is replaced. No gate has made it, or the store's
// clock was set back meanwhile.
func TestEndlessLease(t *testing.T) {
	s := newRealServer(t)
	for name, args := range map[string][]string{"{a}": nil, "{b}": {"PX", "7000000"}, "{c}": {"PX", "303000"}} {
		s.process.Command(append([]string{"SET", name + ":l", "1 other"}, args...)...)
		if fence, err := s.acquire(t.Context(), name, "gate", leaseTime); err != nil || fence == 0 {
			t.Errorf("%v: got %d, %v", args, fence, err)
		}
		if fence, err := s.acquire(t.Context(), name, "other", leaseTime); err != nil || fence != 0 {
			t.Errorf("%v: another gate got %d, %v", args, fence, err)
		}
	}
}

// TestRedisSnapshotsFail: a server that refuses writes since it can't save its snapshots is one that can't be used.
func TestRedisSnapshotsFail(t *testing.T) {
	s := newRealServer(t, "--enable-protected-configs", "yes", "--save", "3600 1")
	s.process.Command("CONFIG", "SET", "dir", "/proc")
	s.process.Command("BGSAVE")
	gatetest.Becomes(t, 10*time.Second, "all writes fail, with advice", func() bool {
		_, _, err := s.announce(testContext(t), "gate-1", []byte("x"), time.Minute)
		return err != nil && advice(err) == advices["MISCONF"]
	})
}

// TestRedisClockJumps: with the starts that a server's clock leaves behind which is set forward or back, a gate's own
// last start counts, and nothing is reserved that is farther away than a request may wait.
func TestRedisClockJumps(t *testing.T) {
	s := newRealServer(t)
	r := pace.Reservation{Interval: time.Second, Since: 400 * time.Millisecond, Longest: 20 * time.Second, Memory: time.Minute}
	for name, c := range map[string]struct {
		stored  time.Duration // the stored start, from now
		granted bool
		wait    time.Duration
	}{
		"{forward}": {-5 * time.Minute, true, 600 * time.Millisecond},
		"{back}":    {5 * time.Minute, false, 5*time.Minute + time.Second},
	} {
		s.process.Command("SET", name+":p", strconv.FormatInt(time.Now().Add(c.stored).UnixMicro(), 10)+" 0", "PX", "600000")
		g, err := s.reserve(testContext(t), name, r)
		if err != nil || (g.Start != 0) != c.granted || (g.Wait-c.wait).Abs() > 300*time.Millisecond {
			t.Errorf("%s: got %+v, %v", name, g, err)
		}
	}
}

// TestErrorsHideLogins: an error of a server does not repeat the gate's user and password.
func TestErrorsHideLogins(t *testing.T) {
	for _, answer := range []string{
		"-ERR unknown command 'AUTH', with args beginning with: 'gatekeeper' 'correct-horse'\r\n",
		"-NOPERM User gatekeeper has no permissions to run the 'evalsha' command\r\n", // Redis 7.2
	} {
		address := answering(t, []string{answer})
		_, err := dial(t.Context(), "redis://gatekeeper:correct-horse@"+address, nil, "robotsgate", time.Second)
		if err == nil || strings.Contains(err.Error(), "correct-horse") || strings.Contains(err.Error(), "gatekeeper") {
			t.Errorf("got %v", err)
		}
	}
}

// TestOtherServers: a server that is no store, or whose scripts return something else, ends nothing and has no value.
func TestOtherServers(t *testing.T) {
	clusterDisabled := "-ERR This instance has cluster support disabled\r\n"
	for name, answers := range map[string][]string{
		"nothing":                   {""},
		"HTTP":                      {"HTTP/1.1 400 Bad Request\r\n\r\n"},
		"an error":                  {"-ERR no\r\n"},
		"an answer that is not one": {helloAnswer, clusterDisabled, "+OK\r\n", ":1\r\n", "_\r\n", "*0\r\n", "*3\r\n:1\r\n*0\r\n%0\r\n", "*3\r\n$1\r\n1\r\n_\r\n_\r\n"},
		"versions":                  {helloAnswer, clusterDisabled, "*3\r\n$2\r\n-1\r\n$1\r\nx\r\n_\r\n", "*3\r\n$20\r\n99999999999999999999\r\n$1\r\nx\r\n_\r\n"},
		"no slots":                  {helloAnswer, "*0\r\n", "*0\r\n"},
		"slots that are no list":    {helloAnswer, "+OK\r\n", "+OK\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := dial(testContext(t), "redis://"+answering(t, answers), nil, "robotsgate", 100*time.Millisecond)
			if err != nil {
				return
			}
			defer s.close()
			for range 10 {
				if got, err := s.load(testContext(t), testName, true); err == nil && got.version != 0 {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}
