package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/gatetest"
)

// A linkTest is a link to a server in memory.
type linkTest struct {
	*link
	t      *testing.T
	server *memoryServer
	log    *gatetest.Output
	dials  atomic.Int64
	events []string              // of onUp and onDown
	refuse atomic.Pointer[error] // of dial
}

const linkTimeout = 100 * time.Millisecond

func newLinkTest(t *testing.T) *linkTest {
	lt := &linkTest{t: t, server: newMemoryServer(), log: new(gatetest.Output)}
	dial := func(ctx context.Context) (server, error) {
		lt.dials.Add(1)
		if err := lt.refuse.Load(); err != nil {
			return nil, *err
		}
		return lt.server, nil
	}
	probe := func(ctx context.Context, s server) error {
		_, _, err := s.announce(ctx, "gate-1", nil, time.Minute)
		return err
	}
	lt.link = newLink(dial, linkTimeout, probe, slog.New(slog.NewTextHandler(lt.log, nil)))
	lt.onUp = func() { lt.events = append(lt.events, fmt.Sprint("up ", lt.up())) }
	lt.onDown = func() { lt.events = append(lt.events, fmt.Sprint("down ", lt.up())) }
	t.Cleanup(lt.close)
	return lt
}

// load makes a call.
func (lt *linkTest) load(ctx context.Context) error {
	return lt.call(ctx, func(ctx context.Context, s server) error {
		_, err := s.load(ctx, testName, true)
		return err
	})
}

// want makes a call, which must return an error after a time.
func (lt *linkTest) want(want error, after time.Duration) {
	lt.t.Helper()
	begin := time.Now()
	if err := lt.load(lt.t.Context()); !errors.Is(err, want) || time.Since(begin) != after {
		lt.t.Errorf("got %v after %v, want %v after %v", err, time.Since(begin), want, after)
	}
}

// wantUp waits for a time, after which the link must be up or away.
func (lt *linkTest) wantUp(want bool, after time.Duration) {
	lt.t.Helper()
	time.Sleep(after) // fake clock
	synctest.Wait()
	if status := lt.status(); lt.up() != want || status.up != want || (status.err == nil) != want {
		lt.t.Fatalf("after %v: up is %t, status %+v, want %t", after, lt.up(), status, want)
	}
}

func testLink(t *testing.T, f func(*testing.T, *linkTest)) {
	synctest.Test(t, func(t *testing.T) { f(t, newLinkTest(t)) })
}

func TestLinkStartsWithoutServer(t *testing.T) {
	testLink(t, func(t *testing.T, lt *linkTest) {
		lt.refuse.Store(new(errors.New("connection refused")))
		lt.wantUp(false, 0)
		lt.start()
		lt.want(errAway, 0)
		lt.wantUp(false, time.Minute)
		lt.want(errAway, 0)
		if n := lt.dials.Load(); n < 30 || n > 65 {
			t.Errorf("%d connections were tried in a minute, want one in 1 to 2 s", n)
		}
		if n := lt.server.count(); n != 0 {
			t.Errorf("%d calls were made", n)
		}
		lt.refuse.Store(nil)
		lt.wantUp(true, longestRetry)
		lt.want(nil, 0)
		if n := strings.Count(lt.log.String(), "\n"); n != 2 {
			t.Errorf("got %d lines in the log, want 2:\n%s", n, lt.log)
		}
	})
}

// TestLinkStartWaits: calls before the first attempt to connect has ended wait for it, no longer than the timeout, and
// only until one of them has waited in vain.
func TestLinkStartWaits(t *testing.T) {
	for _, test := range []struct {
		dial        time.Duration
		first, then error
		wait        time.Duration
	}{
		{60 * time.Millisecond, nil, nil, 60 * time.Millisecond},
		{160 * time.Millisecond, errAway, errAway, linkTimeout},
	} {
		testLink(t, func(t *testing.T, lt *linkTest) {
			dial := lt.dial
			lt.dial = func(ctx context.Context) (server, error) {
				time.Sleep(test.dial) // fake clock
				return dial(ctx)
			}
			lt.start()
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() { lt.want(test.first, test.wait) })
			}
			calls.Wait()
			lt.want(test.then, 0)
			lt.wantUp(true, test.dial)
			lt.want(nil, 0)
		})
	}
}

func TestLinkLosesServer(t *testing.T) {
	for name, f := range map[string]faults{
		"error":     {err: errors.New("NOAUTH Authentication required.")},
		"hang":      {hang: true},
		"no answer": {lose: true},
	} {
		t.Run(name, func(t *testing.T) {
			testLink(t, func(t *testing.T, lt *linkTest) {
				lt.start()
				lt.wantUp(true, 0)
				lt.wantUp(true, time.Minute)
				lt.server.set(f)
				var wait time.Duration
				if f.err == nil {
					wait = linkTimeout
				}
				lt.want(errAway, wait)
				lt.wantUp(false, 0)
				lt.want(errAway, 0)
				lt.wantUp(false, 10*time.Second)
				calls := lt.server.count()
				lt.want(errAway, 0)
				if lt.server.count() != calls {
					t.Error("a call reached the store while it is away")
				}
				lt.server.set(faults{})
				lt.wantUp(true, longestRetry+linkTimeout)
				lt.want(nil, 0)
				if got := fmt.Sprint(lt.events); got != "[up true down false up true]" {
					t.Errorf("got the events %s", got)
				}
				if s := lt.status(); s.failures != 1 || s.calls != 2 {
					t.Errorf("got %+v, want 1 failure, and 2 calls", s)
				}
			})
		})
	}
}

// TestLinkReadOnly: a store that can be read but not written counts as away.
func TestLinkReadOnly(t *testing.T) {
	testLink(t, func(t *testing.T, lt *linkTest) {
		lt.server.set(faults{readOnly: true})
		lt.start()
		lt.wantUp(false, time.Minute)
		if !strings.Contains(lt.log.String(), "sentinel=NAME") {
			t.Errorf("the log has no advice:\n%s", lt.log)
		}
	})
}

// TestLinkErrorsThatAreNoLoss: these errors are the caller's, not the store's.
func TestLinkErrorsThatAreNoLoss(t *testing.T) {
	testLink(t, func(t *testing.T, lt *linkTest) {
		lt.start()
		lt.wantUp(true, 0)
		lt.server.setWrong(testName + ":s")
		lt.want(errWrongType, 0)
		err := lt.call(t.Context(), func(ctx context.Context, s server) error { return s.notify(ctx, make([]byte, maxNotice+1)) })
		if !errors.Is(err, errTooLong) {
			t.Errorf("got %v, want errTooLong", err)
		}
		lt.server.set(faults{hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), linkTimeout/2)
		defer cancel()
		if err := lt.load(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the caller's context", err)
		}
		lt.wantUp(true, 0)
		if s := lt.status(); s.failures != 0 {
			t.Errorf("got %+v", s)
		}
	})
}

// TestLinkReleasesWaitingCalls: when the store is lost, all calls end, also the ones that wait for their turn.
func TestLinkReleasesWaitingCalls(t *testing.T) {
	testLink(t, func(t *testing.T, lt *linkTest) {
		lt.start()
		lt.wantUp(true, 0)
		lt.server.set(faults{hang: true})
		var calls sync.WaitGroup
		var most, now int
		var mu sync.Mutex
		begin := time.Now()
		for range 3 * maxCalls {
			calls.Go(func() {
				err := lt.call(t.Context(), func(ctx context.Context, s server) error {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					defer func() {
						mu.Lock()
						now--
						mu.Unlock()
					}()
					_, err := s.load(ctx, testName, true)
					return err
				})
				if !errors.Is(err, errAway) {
					t.Errorf("got %v", err)
				}
			})
		}
		time.Sleep(linkTimeout / 2) // fake clock
		synctest.Wait()
		if most != maxCalls {
			t.Errorf("%d calls at once, want %d", most, maxCalls)
		}
		lt.lose(lt.current.Load(), errors.New("lost"))
		calls.Wait()
		if took := time.Since(begin); took != linkTimeout/2 {
			t.Errorf("the calls ended after %v, want %v, when the store was lost", took, linkTimeout/2)
		}
	})
}

// TestLinkFlaps: a store that answers the probe but fails calls is tried less and less often.
func TestLinkFlaps(t *testing.T) {
	testLink(t, func(t *testing.T, lt *linkTest) {
		lt.start()
		fail := func(context.Context, server) error { return errors.New("OOM") }
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // fake clock
			_ = lt.call(t.Context(), fail)
		}
		if n := lt.dials.Load(); n > 65 {
			t.Errorf("%d connections in a minute, want one in 1 to 2 s", n)
		}
		time.Sleep(longestRetry) // fake clock
		lt.wantUp(true, healthy)
		_ = lt.call(t.Context(), fail)
		lt.wantUp(false, 0)
		lt.wantUp(true, 150*time.Millisecond)
	})
}

func TestLinkObserves(t *testing.T) {
	testLink(t, func(t *testing.T, lt *linkTest) {
		var got []time.Duration
		lt.observe = func(took time.Duration) { got = append(got, took) }
		lt.start()
		lt.wantUp(true, 0)
		lt.want(nil, 0)
		lt.server.set(faults{hang: true})
		lt.want(errAway, linkTimeout)
		lt.want(errAway, 0)
		if want := "[0s]"; fmt.Sprint(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestLinkClose(t *testing.T) {
	testLink(t, func(t *testing.T, lt *linkTest) {
		lt.start()
		lt.wantUp(true, 0)
		lt.server.set(faults{hang: true})
		done := make(chan error)
		go func() { done <- lt.load(t.Context()) }()
		synctest.Wait()
		lt.close()
		if err := <-done; !errors.Is(err, errAway) {
			t.Errorf("a call during close: %v", err)
		}
		lt.wantUp(false, 0)
		lt.want(errAway, 0)
		if strings.Contains(lt.log.String(), "WARN") {
			t.Errorf("closing counts as a loss:\n%s", lt.log)
		}
	})
}

// TestLinkAdvice: while the store is away, another reason is logged if something else is to be done.
func TestLinkAdvice(t *testing.T) {
	testLink(t, func(t *testing.T, lt *linkTest) {
		lt.refuse.Store(new(errors.New("connection refused")))
		lt.start()
		lt.wantUp(false, time.Minute)
		lt.refuse.Store(new(errors.New("WRONGPASS invalid username-password pair or user is disabled.")))
		lt.wantUp(false, time.Minute)
		lt.refuse.Store(new(errors.New("connection reset")))
		lt.wantUp(false, time.Minute)
		lt.refuse.Store(nil)
		lt.wantUp(true, time.Minute)
		lines := strings.Split(strings.TrimSpace(lt.log.String()), "\n")
		for i, want := range []string{"can be reached", "check USER:PASSWORD", "connected"} {
			if len(lines) != 3 || !strings.Contains(lines[i], want) {
				t.Fatalf("want 3 lines, %d of them with %q:\n%s", i, want, lt.log)
			}
		}
	})
}

// TestLinkToRedis stops, kills and cuts off a real server: the link is up again soon after the store.
func TestLinkToRedis(t *testing.T) {
	process := gatetest.Redis(t)
	cable := gatetest.NewCable(t, process.HostPort())
	dial := func(ctx context.Context) (server, error) {
		return dial(ctx, "redis://"+cable.HostPort(), nil, "robotsgate", time.Second)
	}
	l := newLink(dial, time.Second, func(ctx context.Context, s server) error {
		_, _, err := s.announce(ctx, "gate-1", nil, time.Minute)
		return err
	}, slog.New(slog.DiscardHandler))
	l.start()
	t.Cleanup(l.close)
	eventually := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !done(); <-time.After(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	eventually("the link is not up", l.up)
	for _, outage := range []struct {
		name       string
		begin, end func()
	}{
		{"cut", cable.Cut, cable.Restore},
		{"hung cable", cable.Hang, cable.Restore},
		{"killed", process.Kill, process.Restart},
		{"replica", func() { process.Command("REPLICAOF", "127.0.0.1", "1") }, func() { process.Command("REPLICAOF", "NO", "ONE") }},
		{"full", func() { process.Command("CONFIG", "SET", "maxmemory", "1") }, func() { process.Command("CONFIG", "SET", "maxmemory", "0") }},
		{"emptied", func() { process.Command("FLUSHALL") }, nil},
	} {
		call := func() error {
			return l.call(t.Context(), func(ctx context.Context, s server) error { return s.notify(ctx, []byte("a")) })
		}
		outage.begin()
		if outage.end == nil {
			if err := call(); err != nil {
				t.Errorf("%s: %v", outage.name, err)
			}
			continue
		}
		eventually(outage.name+" is not noticed", func() bool { return errors.Is(call(), errAway) })
		if err := call(); !errors.Is(err, errAway) {
			t.Errorf("%s: got %v", outage.name, err)
		}
		outage.end()
		begin := time.Now()
		eventually(outage.name+": the link is not up again", func() bool { return call() == nil })
		t.Logf("%s: up %v after the store: %+v", outage.name, time.Since(begin), l.status())
	}
}
