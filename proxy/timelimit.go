package proxy

import (
	"sync"
	"time"
)

// A breaker breaks off a Read or Write that is going on.
type breaker interface{ breakOff() }

type breakFunc func()

func (f breakFunc) breakOff() { f() }

// A timeLimit is how long a client or an origin may take to send or to read a piece of
// a body: it ends a Read or a Write in which nothing has moved for so long.
//
// The deadlines of net/http are no help: in HTTP/2 they are timers that end the
// stream when they fire, whether or not anybody waits then; in HTTP/1 they are those
// of the whole connection, and net/http reads on behind a body to see whether the
// client leaves. So they are set only to break off what takes too long.
//
// Transport may still be reading a body when the exchange is over; by then the
// connection is not ours any more, and to set a deadline of an HTTP/2 stream would end
// the process: so what goes on is broken off under the lock that stop takes.
type timeLimit struct {
	idle time.Duration
	end  breaker

	mu    sync.Mutex
	timer *time.Timer
	since time.Time // when the Read or Write began; zero: there is none
	used  bool      // there was one
	broke bool      // one was broken off
	over  bool
}

// begin is called before a Read or Write.
func (p *timeLimit) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used = true; p.over {
		return
	}
	p.since = time.Now()
	if p.timer == nil {
		p.timer = time.AfterFunc(p.idle, p.look)
	} else {
		p.timer.Reset(p.idle)
	}
}

// done is called after it.
func (p *timeLimit) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *timeLimit) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over && !p.since.IsZero() && time.Since(p.since) >= p.idle {
		p.broke = true
		p.end.breakOff()
	}
}

// brokeOff reports whether something took too long.
func (p *timeLimit) brokeOff() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broke
}

// stop ends it for good, and reports whether it was ever needed.
func (p *timeLimit) stop() (used bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
	return p.used
}
