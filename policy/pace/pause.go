package pace

import (
	"net/http"
	"strconv"
	"time"
)

const (
	// firstPause is the pause after an answer without a Retry-After. It doubles with each in a row.
	firstPause = 5 * time.Second

	// firstWait is how long others wait for the answer to the first request after a pause. Then another one is the
	// first: the client may send its request slowly, or the gate that has sent it may have died.
	firstWait = 5 * time.Second

	// firstPoll is the time between two looks whether another gate has that answer.
	firstPoll = 100 * time.Millisecond

	// maxPauses bounds the product tokens with pauses of their own at one origin. A token is what a client
	// claims. Further tokens share one pause.
	maxPauses = 64

	// drift is how much the begin of one pause may differ when it is computed twice.
	drift = time.Second
)

// A Pause holds the requests of one product token to one origin. Its times are by one clock. The zero value
// is none.
type Pause struct {
	Since time.Duration // when it began; with Row 0, when the series ended
	Until time.Duration // with First, when another request may be the first
	Row   int           // answers in a row that asked for it; 0: another answer has ended the series
	First bool          // a request has started after it, and its answer is awaited
}

// admit notes that a request is the first after the pause, if it is.
func (p *Pause) admit(now time.Duration) (changed bool) {
	if p.Row == 0 || p.Until > now {
		return false
	}
	p.First, p.Until = true, now+firstWait
	return true
}

// answered notes the answer to a request that had started at a time. It reports whether the pause changes,
// which is at most so long as longest.
//
// Only the answer to a first request after the pause, or to one of report mode, doubles it or ends it: by others the
// origin has not seen that the crawler obeys. A request of another gate may start after the pause began and before the
// store has it.
func (p *Pause) answered(a Response, start, now, longest time.Duration) bool {
	obeyed := p.First && start >= p.Since || !p.First && start >= p.Until
	switch {
	case a.asks():
		if obeyed || p.Row == 0 {
			*p = Pause{Since: now, Row: p.Row + 1}
		}
		length, ok := a.retryAfter()
		if !ok {
			length = firstPause << min(p.Row-1, 20)
		}
		p.Until = max(p.Until, now+min(length, longest))
	case p.Row == 0 || !obeyed:
		return false
	case a.Status == 0:
		p.First, p.Until = false, min(p.Until, now) // another request may be the first
	default:
		*p = Pause{Since: now}
	}
	return true
}

// A Response is the part of a response of an origin that matters to the pace. Its zero value stands for none.
type Response struct {
	Status     int
	RetryAfter string // the header field, "" if there is none
	Date       string // the header field: a date in RetryAfter is one of the same clock
}

// asks reports whether the origin asks for a pause.
func (a Response) asks() bool {
	return a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable
}

// retryAfter reads the Retry-After field (RFC 9110, 10.2.3). A date in the past is no time at all. The
// origin's clock may differ from the gate's, so a date counts from the answer's own.
func (a Response) retryAfter() (time.Duration, bool) {
	if until, err := http.ParseTime(a.RetryAfter); err == nil {
		now, err := http.ParseTime(a.Date)
		if err != nil {
			now = time.Now()
		}
		return max(until.Sub(now), 0), true
	}
	seconds, err := strconv.ParseUint(a.RetryAfter, 10, 64)
	if err != nil {
		return 0, false
	}
	return time.Duration(min(seconds, uint64(forever/time.Second))) * time.Second, true
}

// Done says how the request has been answered, and lets others start. It may be called once.
//
// If the answer begins or ends a pause, and gates share pauses, it returns when they do.
func (t *Turn) Done(a Response) {
	p := t.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := p.settings.BackOff
	if longest > 0 && (a.asks() || p.ownPause(&t.request).Row > 0) {
		p.changePause(&t.request, t.start, func(s *Pause, start, now time.Duration) bool {
			return s.answered(a, start, now, longest)
		})
	}
}

// admit reports whether no pause holds a request that may start by all other rules. Another gate may have been asked
// for a pause that they share. The lock may be released meanwhile.
func (p *Pacer) admit(r *Request) (ok bool) {
	if p.settings.BackOff <= 0 || p.clock == nil && p.ownPause(r).Row == 0 {
		return true
	}
	p.changePause(r, p.now(), func(s *Pause, _, now time.Duration) (changed bool) {
		changed = s.admit(now)
		ok = changed || s.Row == 0
		return changed
	})
	return ok
}

// A pauseChange changes a pause, and reports whether it has. It gets the start of a request, and the time, by the clock
// of the pause.
type pauseChange func(s *Pause, start, now time.Duration) bool

// changePause changes the pause for a request that has started at a time. Gates that share a clock change it there.
// This gate goes by its own pause while the clock can't be used, and if its own has begun later. The lock may be
// released meanwhile.
func (p *Pacer) changePause(r *Request, start time.Duration, change pauseChange) {
	if p.clock == nil || p.changeShared(r, start, change) != nil {
		s := p.ownPause(r)
		change(&s, start, p.now())
		p.setPause(r, s)
	}
}

// changeShared changes the pause that the gates share.
func (p *Pacer) changeShared(r *Request, start time.Duration, change pauseChange) error {
	longest, own := p.settings.BackOff, p.ownPause(r)
	var learned Pause // by this gate's clock
	p.mu.Unlock()
	err := p.clock.Pause(r.Origin, r.Token, func(s *Pause, now time.Duration) (keep time.Duration) {
		ahead := now - p.now()
		s.bound(now, longest)
		if own.Row > 0 && own.Since+ahead > s.Since+drift {
			*s = own.moved(ahead)
		}
		changed := change(s, start+ahead, now)
		learned = s.moved(-ahead)
		if changed {
			return max(s.Until-now, 0) + longest
		}
		if s.First { // another gate may get the answer to the first request
			learned.Until = min(learned.Until, p.now()+firstPoll)
		}
		return 0
	})
	p.mu.Lock()
	if err == nil {
		p.setPause(r, learned)
	}
	return err
}

// bound makes of a shared pause what this gate obeys: none if it has ended long ago, or is from the future since
// the clock was set back.
func (p *Pause) bound(now, longest time.Duration) {
	if p.Since < 0 || p.Since > now || p.Row < 0 {
		*p = Pause{}
	}
	p.Until = min(p.Until, now+longest)
}

// moved returns the pause with other times.
func (p Pause) moved(by time.Duration) Pause {
	p.Since, p.Until = p.Since+by, p.Until+by
	return p
}

// ownPause returns what this gate knows of the pause for a request.
func (p *Pacer) ownPause(r *Request) Pause {
	if o := p.origins[r.Origin]; o != nil {
		return o.pause(r.Token)
	}
	return Pause{}
}

// setPause notes the pause for a request, unless it has begun before the one that is known.
func (p *Pacer) setPause(r *Request, s Pause) {
	own := p.ownPause(r)
	if own.Row > 0 && own.Since > s.Since+drift || own.Row == 0 && s.Row == 0 {
		return
	}
	o := p.remember(r.Origin)
	if o == nil {
		return
	}
	if s.Row == 0 {
		delete(o.pauses, o.key(r.Token))
	} else {
		if o.pauses == nil {
			o.pauses = map[string]Pause{}
		}
		o.pauses[o.key(r.Token)] = s
	}
	p.pass(o)
}

// key returns under which name the pause of a token is.
func (o *origin) key(token string) string {
	if _, ok := o.pauses[token]; ok || len(o.pauses) < maxPauses {
		return token
	}
	return ""
}

// pause returns the pause of a product token, the zero value if there is none.
func (o *origin) pause(token string) Pause { return o.pauses[o.key(token)] }

// boundPauses ends pauses earlier that are longer than longest.
func (o *origin) boundPauses(longest time.Duration) {
	for token, p := range o.pauses {
		if p.Until = min(p.Until, p.Since+longest); longest > 0 {
			o.pauses[token] = p
		} else {
			delete(o.pauses, token)
		}
	}
}
