package pace

import (
	"net/http"
	"strconv"
	"time"
)

// firstPause is the pause after an answer without a Retry-After. It doubles with each in a row.
const firstPause = 5 * time.Second

// firstWait is how long others wait for the answer to the first request after a pause. Then another one is the
// first: the client may send its request slowly, or the gate that has sent it may have died.
const firstWait = 5 * time.Second

// maxPauses bounds the product tokens with pauses of their own at one origin. A token is what a client
// claims. Further tokens share one pause.
const maxPauses = 64

// A Pause holds the requests of one product token to one origin. Its times are by one clock. The zero value
// is none.
type Pause struct {
	Since time.Duration // when it began; with Row 0, when the series ended
	Until time.Duration
	Ends  time.Duration // from then on it does not count
	Row   int           // answers in a row that asked for it; 0: another answer has ended the series
	First bool          // a request has started after it, and its answer is awaited

	firstAt time.Duration // when this gate has started it
}

// forgotten reports whether the pause ended so long ago that it does not count any more.
func (p *Pause) forgotten(now time.Duration) bool { return !p.First && p.Ends <= now }

// answered notes the answer to a request that had started at a time. It reports whether the pause changes,
// which is at most so long as longest.
//
// Only the answer to a first request after the pause doubles it or ends it: by others the origin has not seen
// that the crawler obeys. A request of another gate may start after the pause began and before the store has it.
func (p *Pause) answered(a Response, start, now, longest time.Duration) bool {
	obeyed := p.First && start >= p.Since
	switch {
	case a.asks() && longest > 0:
		if obeyed || p.Row == 0 {
			p.Row, p.Since, p.First = p.Row+1, now, false
		}
		length, ok := a.retryAfter()
		if !ok {
			length = firstPause << min(p.Row-1, 20)
		}
		p.Until = max(p.Until, now+min(length, longest))
		p.Ends = p.Until + longest
	case p.Row == 0 || !obeyed:
		return false
	case a.Status == 0:
		p.First, p.Until = false, min(p.Until, now) // another request may be the first
	default:
		*p = Pause{Since: now, Ends: now + longest}
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

// Done says how the request has been answered, and lets others start. It may be called once.
//
// If the answer begins or ends a pause, and gates share pauses, it returns when they do.
func (t *Turn) Done(a Response) {
	p := t.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changePauses(t, a)
	if o := p.origins[t.request.Origin]; o != nil {
		p.pumpSoon(o, p.now())
	}
}

// awaitPause delays a request while its product token pauses.
func (a *arrival) awaitPause() {
	if a.origin == nil {
		return
	}
	switch until := a.origin.paused(a.request.Token); {
	case a.origin.probing(a.request.Token, a.now): // it may end at any moment
		a.by, a.waits = ByPause, true
	case until > a.at:
		a.at, a.by, a.waits = until, ByPause, true
	}
}

// changePauses begins or ends a pause by an answer. It may release the lock meanwhile. The start of a request of report
// mode changes no pause.
func (p *Pacer) changePauses(t *Turn, a Response) {
	now, longest := p.now(), p.settings.BackOff
	asks := longest > 0 && a.asks()
	o := p.origins[t.request.Origin]
	if o == nil && asks {
		o = p.remember(t.request.Origin, now)
	}
	if o == nil {
		return
	}
	if pause := o.pause(t.request.Token, asks); pause != nil {
		before := *pause
		changed := pause.answered(a, t.start, now, longest)
		if pause.Row == 0 {
			delete(o.pauses, o.key(t.request.Token))
		}
		if changed {
			p.shareAnswer(t, a, before)
		}
	}
}

// key returns under which name the pause of a token is.
func (o *origin) key(token string) string {
	if _, ok := o.pauses[token]; ok || len(o.pauses) < maxPauses {
		return token
	}
	return ""
}

// pause returns the pause of a product token. If there is none it adds one, or returns nil.
func (o *origin) pause(token string, add bool) *Pause {
	key := o.key(token)
	p := o.pauses[key]
	if p == nil && add {
		if o.pauses == nil {
			o.pauses = map[string]*Pause{}
		}
		p = &Pause{Since: never}
		o.pauses[key] = p
	}
	return p
}

// paused returns when the pause of a product token ends. While the answer to the first request after
// it is awaited, that is the latest time.
func (o *origin) paused(token string) time.Duration {
	p := o.pause(token, false)
	switch {
	case p == nil:
		return never
	case p.First:
		return max(p.Until, p.firstAt+firstWait)
	}
	return p.Until
}

// probing reports whether the answer to the first request after a pause is awaited.
func (o *origin) probing(token string, now time.Duration) bool {
	p := o.pause(token, false)
	return p != nil && p.First && o.paused(token) > now
}

// boundPauses ends pauses earlier that are longer than longest.
func (o *origin) boundPauses(longest time.Duration) {
	for token, p := range o.pauses {
		if p.Until = min(p.Until, p.Since+max(longest, 0)); longest <= 0 {
			delete(o.pauses, token)
		}
	}
}

// probe notes the start of a request, and reports whether it is the first after a pause.
func (o *origin) probe(token string, now time.Duration) bool {
	p := o.pause(token, false)
	if p == nil || o.paused(token) > now {
		return false
	}
	p.First, p.firstAt = true, now
	return true
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
