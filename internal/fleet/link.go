package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// errAway is the error of calls while the store can't be used. They don't wait.
var errAway = errors.New("the fleet's store is away")

const (
	checkInterval = time.Second            // between two checks of a store that can be used
	firstRetry    = 100 * time.Millisecond // with jitter: 50 to 150 ms
	longestRetry  = 2 * time.Second
)

// A link is a circuit breaker for the calls of the store. It is away until a check succeeds, and again from the first
// call that fails on; then only checks go to the store.
type link struct {
	onUp, onDown func()       // called when the state changes
	timeout      atomic.Int64 // of one call, a time.Duration
	log          *slog.Logger

	calls, failures atomic.Uint64

	session atomic.Int64  // number of the time between two losses of the store; 0 while it is away
	lost    chan struct{} // has an element after a loss

	mu     sync.Mutex
	since  time.Time            // of the state
	err    error                // why it is away
	warned map[string]time.Time // when each advice was logged last
}

func newLink(timeout time.Duration, log *slog.Logger) *link {
	l := &link{onUp: func() {}, onDown: func() {}, log: log, lost: make(chan struct{}, 1), since: time.Now(), err: errors.New("not connected yet"), warned: map[string]time.Time{}}
	l.timeout.Store(int64(timeout))
	return l
}

// state returns since when the store can be used, or is away and why.
func (l *link) state() (since time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since, l.err
}

func (l *link) up() bool { return l.session.Load() > 0 }

// call calls f with a context that ends after the timeout. While the store is away it returns errAway at once. An error of
// f loses the store, except one after the end of ctx.
func (l *link) call(ctx context.Context, f func(context.Context) error) error {
	session := l.session.Load()
	if session == 0 {
		return errAway
	}
	err := l.try(ctx, time.Duration(l.timeout.Load()), f)
	if err == nil || ctx.Err() != nil {
		return err
	}
	l.lose(session, err)
	return errAway
}

// try calls f, whether the store is away or not.
func (l *link) try(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l.calls.Add(1)
	err := f(limited)
	if err == nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.failures.Add(1)
	if limited.Err() != nil {
		err = fmt.Errorf("no answer within %v", limit)
	}
	return err
}

// lose ends a session, unless it has ended before.
func (l *link) lose(session int64, err error) {
	if session != 0 && l.session.CompareAndSwap(session, 0) {
		l.onDown()
		l.setState(err)
		l.warn(err)
		select {
		case l.lost <- struct{}{}:
		default:
		}
	}
}

// warn logs each advice once a minute. After a change of its password a store may first break a connection off, and then
// refuse the login: the second line says what to do.
func (l *link) warn(err error) {
	advice := advice(err)
	l.mu.Lock()
	due := time.Since(l.warned[advice]) >= time.Minute
	if due {
		l.warned[advice] = time.Now()
	}
	l.mu.Unlock()
	if due {
		l.log.Warn("the fleet's store is away: this gate goes on alone", "error", err, "advice", advice)
	}
}

func (l *link) setState(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if (l.err == nil) != (err == nil) {
		l.since = time.Now()
	}
	l.err = err
}

// run checks the store until ctx ends: every checkInterval, and after each failure with growing pauses. It calls tried
// after the first check.
func (l *link) run(ctx context.Context, check func(context.Context) error, tried func()) {
	tried = sync.OnceFunc(tried)
	retry, next := firstRetry, int64(1)
	for {
		err := check(ctx)
		switch session := l.session.Load(); {
		case ctx.Err() != nil:
		case err != nil && session != 0:
			l.lose(session, err)
		case err != nil:
			l.setState(err)
			l.warn(err)
		case session == 0:
			l.setState(nil)
			l.session.Store(next)
			next++
			l.log.Info("connected to the fleet's store")
			l.onUp()
		default:
			retry = firstRetry // it can be used for some time
		}
		tried()
		if l.up() {
			select {
			case <-ctx.Done():
			case <-time.After(checkInterval):
			case <-l.lost:
			}
		}
		if !l.up() {
			select {
			case <-ctx.Done():
			case <-time.After(min(longestRetry, retry/2+rand.N(retry))):
			}
			retry = min(longestRetry, 2*retry)
		}
		if ctx.Err() != nil {
			return
		}
	}
}
