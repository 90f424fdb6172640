package fleet

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// errAway is the error of calls while the store can't be used. They don't wait.
var errAway = errors.New("the fleet's store is away")

const (
	maxCalls     = 32 // at once; further ones wait
	dialLimit    = 10 * time.Second
	firstRetry   = 100 * time.Millisecond // with jitter: 50 to 150 ms
	longestRetry = 2 * time.Second
	healthy      = 10 * time.Second // a connection that has lasted so long lets retries begin with firstRetry again
)

// A link is the connection to the store, with a circuit breaker. It is away until the store has been
// dialled and probed, and again from the first call that fails on. Then it closes the connection and
// tries again in the background.
type link struct {
	dial    func(context.Context) (server, error)
	probe   func(context.Context, server) error
	timeout atomic.Int64 // of one call, a time.Duration
	log     *slog.Logger

	// These may be set before start. onUp is called when up is true, after probe, and onDown when up is
	// false. They are called in turn; while one runs there are no retries.
	onUp, onDown func()
	observe      func(took time.Duration) // after each call that the store has answered

	calls, failures atomic.Uint64

	slots   chan struct{}
	current atomic.Pointer[session] // nil while away
	tried   chan struct{}           // closed when the first attempt to connect has ended, or a call has waited for it in vain
	settle  func()                  // closes tried
	ctx     context.Context         // until close
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	since time.Time // of the state
	err   error     // why it is away
}

// A session is the time between two losses of the store.
type session struct {
	server server
	ctx    context.Context // ends with the session, with its cause
	end    context.CancelCauseFunc
}

// newLink returns a link that is away, until start has been called.
//
// The context of dial has a time limit. probe checks that the store can be read and written; it is the
// first that uses a new connection, before up is true. timeout is for one call.
func newLink(dial func(context.Context) (server, error), timeout time.Duration, probe func(context.Context, server) error, log *slog.Logger) *link {
	l := &link{dial: dial, probe: probe, log: log, slots: make(chan struct{}, maxCalls), tried: make(chan struct{}), since: time.Now(), err: errNotYet}
	l.settle = sync.OnceFunc(func() { close(l.tried) })
	l.onUp, l.onDown, l.observe = func() {}, func() {}, func(time.Duration) {}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.setTimeout(timeout)
	return l
}

var (
	errNotYet = errors.New("not connected yet")
	errClosed = errors.New("the gate stops")
)

// setTimeout changes the time for one call.
func (l *link) setTimeout(d time.Duration) { l.timeout.Store(int64(d)) }

func (l *link) limit() time.Duration { return time.Duration(l.timeout.Load()) }

// start dials the store in the background.
func (l *link) start() { l.running.Go(l.run) }

// close ends the link and waits until it has ended.
func (l *link) close() {
	l.cancel()
	l.running.Wait()
}

// up reports whether the store can be used.
func (l *link) up() bool { return l.current.Load() != nil }

// A linkStatus is how a link is doing.
type linkStatus struct {
	up              bool
	since           time.Time // of being up or away
	err             error     // why it is away
	calls, failures uint64
}

func (l *link) status() linkStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return linkStatus{l.err == nil, l.since, l.err, l.calls.Load(), l.failures.Load()}
}

// session returns the current session, nil while the store is away. At the start it waits for the first attempt to
// connect, for as long as a call may take: a gate that decides alone then would fetch what others know.
func (l *link) session(ctx context.Context) *session {
	if s := l.current.Load(); s != nil {
		return s
	}
	limited, cancel := context.WithTimeout(ctx, l.limit())
	defer cancel()
	select {
	case <-l.tried:
	case <-l.ctx.Done():
	case <-limited.Done():
		if ctx.Err() == nil {
			l.settle()
		}
	}
	return l.current.Load()
}

// call calls f with the store and a context that ends after the timeout. It returns errAway at once
// while the store is away, and if it is lost meanwhile. An error of f loses the store, except
// errWrongType, errTooLong, and one after the end of ctx: call returns these.
func (l *link) call(ctx context.Context, f func(context.Context, server) error) error {
	s := l.session(ctx)
	if s == nil {
		return errAway
	}
	limited, cancel := context.WithTimeout(ctx, l.limit())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-limited.Done():
		// The calls that have the slots decide whether the store is lost.
		if err := ctx.Err(); err != nil {
			return err
		}
		return errAway
	}
	l.calls.Add(1)
	begin := time.Now()
	err := f(limited, s.server)
	if err == nil {
		l.observe(time.Since(begin))
	}
	switch {
	case err == nil || errors.Is(err, errWrongType) || errors.Is(err, errTooLong):
		return err
	case s.ctx.Err() != nil:
		l.failures.Add(1)
		return errAway
	case ctx.Err() != nil:
		return ctx.Err()
	}
	l.failures.Add(1)
	l.lose(s, l.late(err))
	return errAway
}

// late returns an error that names the timeout if err is the end of a call's context, and otherwise err.
func (l *link) late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errors.New("no answer within " + l.limit().String())
	}
	return err
}

// lose ends a session: from now on calls return errAway, also the ones that wait.
func (l *link) lose(s *session, err error) {
	if l.current.CompareAndSwap(s, nil) {
		l.setState(err)
		s.end(err)
	}
}

// setState notes that the store is up if err is nil, and otherwise why it is away.
func (l *link) setState(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if (l.err == nil) != (err == nil) {
		l.since = time.Now()
	}
	l.err = err
}

// run connects to the store again and again, until close.
func (l *link) run() {
	states := stateLog{log: l.log}
	retry := firstRetry
	for l.ctx.Err() == nil {
		s, err := l.connect()
		l.settle()
		if err == nil {
			began := time.Now()
			states.up()
			l.onUp()
			<-s.ctx.Done()
			l.lose(s, errClosed) // if close has ended it
			s.server.close()
			l.onDown()
			err = context.Cause(s.ctx)
			if time.Since(began) >= healthy {
				retry = firstRetry
			}
		} else {
			l.setState(err)
		}
		if l.ctx.Err() != nil {
			return
		}
		states.away(err)
		l.sleep(min(longestRetry, retry/2+rand.N(retry)))
		retry = min(longestRetry, 2*retry)
	}
}

// connect returns a new session, which is current.
func (l *link) connect() (*session, error) {
	ctx, cancel := context.WithTimeout(l.ctx, dialLimit)
	defer cancel()
	server, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel = context.WithTimeout(l.ctx, l.limit())
	defer cancel()
	if err := l.probe(ctx, server); err != nil {
		server.close()
		return nil, l.late(err)
	}
	s := &session{server: server}
	s.ctx, s.end = context.WithCancelCause(l.ctx)
	l.setState(nil)
	l.current.Store(s)
	return s, nil
}

// sleep waits, but not beyond close.
func (l *link) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ctx.Done():
	}
}
