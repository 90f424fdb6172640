package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/proxy/internal/netconn"
)

// It is found out at these times that a client has left: the longer a request has taken, the
// less it matters. Thousands of streams are looked at too.
const (
	lookSoon   = 250 * time.Millisecond
	lookSeldom = 5 * time.Second
)

// nextLook returns when to look again after one at a request that has taken so long.
func nextLook(age time.Duration) time.Duration { return min(max(lookSoon, age/4), lookSeldom) }

// A presence finds out whether the client of a connection is still there while its request
// is served.
//
// In HTTP/1 net/http does so by a Read of one byte in the background of every request: a
// goroutine that has hardly begun to wait when it is told that it need not. That is a tenth
// of what a request costs, and the more of them are answered the less any of it is needed.
// So that Read finds nothing, and those requests that take long are looked after by a timer.
type presence struct {
	conn   *netconn.Conn  // nil: it can't be looked at, and is left to net/http
	socket netconn.Socket // of conn
	tls    *tls.Conn      // by which requests come; nil: in clear

	serving atomic.Bool // net/http reads only to see whether the client leaves

	mu    sync.Mutex
	visit *visit      // that is going on; nil: there is none
	timer *time.Timer // nil: never needed yet
	runs  bool
	at    time.Time // when it ends
	ahead []byte    // what was read of TLS to see whether the client has left: a byte
}

// of makes it that of a connection. It must not be copied then.
func (p *presence) of(conn *netconn.Conn) {
	if !canTellPeerLeft {
		return
	}
	if p.socket.Init(conn); p.socket.Raw() != nil {
		p.conn = conn
	}
}

// idle reports whether a Read is the one in the background.
func (p *presence) idle(buf []byte) bool { return len(buf) == 1 && p.serving.Load() }

// watch is told of what becomes of an HTTP/1 connection: of a request before net/http reads
// in the background of it.
func (p *presence) watch(state http.ConnState) {
	if state == http.StateActive && p.conn != nil {
		p.serving.Store(true)
	}
}

// attended has a handler serve requests. A body is not kept from who reads it.
func (p *Proxy) attended(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, stream := clientOf(r), r.ProtoMajor == 2
		if stream {
			end, err := c.admitStream(r, p.Limits.IdleTimeout)
			if err != nil {
				p.crowd.noMemory(c, err, p.Log)
				panic(http.ErrAbortHandler) // an answer would have to wait for the client, too
			}
			defer end()
		}
		if c != nil && c.presence.serving.Load() {
			if r.Body != http.NoBody {
				c.presence.serving.Store(false)
			} else if r.Method != http.MethodConnect { // the requests in a tunnel may come before its own has ended
				defer c.presence.serving.Store(false)
			}
		}
		serve(w, r)
		if stream {
			c.flushStream(w)
		}
	}
}

// handOver is called before others than net/http read from the connection.
func (p *presence) handOver() {
	p.serving.Store(false)
	p.end()
}

// begin is called when a request is served, all of which has been read.
func (p *presence) begin(v *visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visit = v
	if soon := v.since.Add(lookSoon); !p.runs || p.at.After(soon) {
		p.lookAfter(lookSoon, soon)
	}
}

// lookAfter sets the timer. The caller has the lock.
func (p *presence) lookAfter(d time.Duration, at time.Time) {
	p.runs, p.at = true, at
	if p.timer == nil {
		p.timer = time.AfterFunc(d, p.look)
	} else {
		p.timer.Reset(d)
	}
}

// end is called when it has been.
func (p *presence) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.visit = nil
}

// look is the timer's.
func (p *presence) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.visit
	if p.runs = v != nil; !p.runs {
		return
	}
	now := time.Now()
	next := nextLook(now.Sub(v.since))
	p.lookAfter(next, now.Add(next))
	if v.Context.Err() != nil || p.left() {
		v.cancel(context.Canceled)
	}
}

// left reports whether the client has left. The caller has the lock.
func (p *presence) left() bool {
	left, more := peerLeft(p.socket.Raw())
	if left || !more || p.tls == nil || len(p.ahead) > 0 || !p.serving.Load() {
		return left
	}
	// It may be TLS's goodbye: there are clients that wait for its answer before they close.
	p.conn.SetNonBlocking(&p.socket)
	var b [1]byte
	n, err := p.tls.Read(b[:])
	p.conn.SetNonBlocking(nil)
	p.ahead = append(p.ahead, b[:n]...)
	return n == 0 && err != nil && !errors.Is(err, netconn.ErrWouldBlock)
}

// takeAhead reads what was read ahead of a connection in TLS.
func (p *presence) takeAhead(of *tls.Conn, b []byte) (n int) {
	if p.tls != of {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n = copy(b, p.ahead)
	p.ahead = p.ahead[n:]
	return n
}

// A visit is the context of a request that a presence looks after. It ends when the client has
// left, and with the exchange.
type visit struct {
	context.Context // net/http's, which nobody waits for
	x               *exchange
	presence        *presence
	since           time.Time

	mu   sync.Mutex
	err  error
	done chan struct{} // nil: nobody has asked
	then []*afterVisit
}

type afterVisit struct{ do func() }

// attend returns the context of an exchange.
func (x *exchange) attend(r *http.Request) context.Context {
	p := x.out.presence
	if p == nil || p.conn == nil || r.ProtoMajor != 1 || r.Body != http.NoBody {
		return context.WithValue(x.forOrigin(r), exchangeKey{}, x)
	}
	x.visit.Context, x.visit.x, x.visit.presence, x.visit.since = x.forOrigin(r), x, p, x.Start
	p.begin(x.visit)
	return x.visit
}

// end is that of the exchange.
func (v *visit) end() {
	if v.presence != nil {
		v.presence.end()
		v.cancel(context.Canceled)
	}
}

func (v *visit) cancel(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		return
	}
	v.err = err
	if v.done != nil {
		close(v.done)
	}
	for _, a := range v.then {
		go a.do()
	}
	v.then = nil
}

func (v *visit) Value(key any) any {
	if key == (exchangeKey{}) {
		return v.x
	}
	return v.Context.Value(key)
}

func (v *visit) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

func (v *visit) Done() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.done == nil {
		v.done = make(chan struct{})
		if v.err != nil {
			close(v.done)
		}
	}
	return v.done
}

// AfterFunc is what [context.AfterFunc] calls.
func (v *visit) AfterFunc(do func()) (stop func() bool) {
	a := &afterVisit{do}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		go do()
	} else {
		v.then = append(v.then, a)
	}
	return func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		i := slices.Index(v.then, a)
		if i >= 0 {
			v.then = slices.Delete(v.then, i, i+1)
		}
		return i >= 0
	}
}

// afterFunc is [context.AfterFunc], without its detours.
func afterFunc(ctx context.Context, do func()) (stop func() bool) {
	if v, ok := ctx.(*visit); ok {
		return v.AfterFunc(do)
	}
	return context.AfterFunc(ctx, do)
}
