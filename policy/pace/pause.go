package pace

import (
	"net/http"
	"strconv"
	"time"
)

// firstPause is the pause after an answer without a Retry-After. It doubles with each in a row.
const firstPause = 5 * time.Second

// maxPauses bounds the product tokens with pauses of their own at one origin. A token is what a client
// claims. Further tokens share one pause.
const maxPauses = 64

// A pause holds the requests of one product token to one origin.
type pause struct {
	since   time.Duration // when it began
	until   time.Duration
	row     int  // answers in a row that asked for it
	probing bool // a request has started after it, and its answer is awaited
}

// forgotten reports whether the pause ended so long ago that it does not count any more.
func (p *pause) forgotten(now, backOff time.Duration) bool {
	return !p.probing && p.until+backOff <= now
}

// An Answer is what an origin has answered. Its zero value stands for none.
type Answer struct {
	Status     int
	RetryAfter string // the header field, "" if there is none
	Date       string // the header field: a date in RetryAfter is one of the same clock
}

// Done says how the request has been answered, and lets others start. It may be called once.
func (t *Turn) Done(a Answer) {
	p := t.pacer
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	asks := p.settings.BackOff > 0 && (a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable)
	o := p.origins[t.request.Origin]
	if o == nil && asks {
		o = p.remember(t.request.Origin, now)
	}
	if o == nil {
		return
	}
	switch {
	case asks:
		o.pause(t, a, now, p.settings.BackOff)
	case a.Status == 0:
		o.unanswered(t)
	default:
		o.resume(t)
	}
	p.pumpSoon(o, now)
}

// key returns under which name the pause of a token is.
func (o *origin) key(token string) string {
	if _, ok := o.pauses[token]; ok || len(o.pauses) < maxPauses {
		return token
	}
	return ""
}

// paused returns when the pause of a product token ends. While the answer to the first request after
// it is awaited, that is not known.
func (o *origin) paused(token string) time.Duration {
	p := o.pauses[o.key(token)]
	switch {
	case p == nil:
		return never
	case p.probing:
		return forever
	}
	return p.until
}

// probing reports whether the answer to the first request after a pause is awaited.
func (o *origin) probing(token string) bool {
	p := o.pauses[o.key(token)]
	return p != nil && p.probing
}

// probe notes the start of a request, the first after a pause if there was one.
func (o *origin) probe(token string, now time.Duration) {
	if p := o.pauses[o.key(token)]; p != nil && p.until <= now {
		p.probing = true
	}
}

// pause begins or prolongs a pause. Answers to requests that had started before a pause began do not
// double it: the origin has not seen that the crawler obeys.
func (o *origin) pause(t *Turn, a Answer, now, longest time.Duration) {
	key := o.key(t.request.Token)
	p := o.pauses[key]
	if p == nil {
		p = &pause{since: never}
		if o.pauses == nil {
			o.pauses = map[string]*pause{}
		}
		o.pauses[key] = p
	}
	if t.start >= p.since {
		p.row, p.since, p.probing = p.row+1, now, false
	}
	length, ok := a.retryAfter()
	if !ok {
		length = firstPause << min(p.row-1, 20)
	}
	p.until = max(p.until, now+min(length, longest))
}

// resume ends a series of pauses, unless the request had started before the last one.
func (o *origin) resume(t *Turn) {
	key := o.key(t.request.Token)
	if p := o.pauses[key]; p != nil && t.start >= p.since {
		delete(o.pauses, key)
	}
}

// unanswered lets another request be the first after the pause.
func (o *origin) unanswered(t *Turn) {
	if p := o.pauses[o.key(t.request.Token)]; p != nil && t.start >= p.since {
		p.probing = false
	}
}

// retryAfter reads the Retry-After field (RFC 9110, 10.2.3). A date in the past is no time at all. The
// origin's clock may differ from the gate's, so a date counts from the answer's own.
func (a Answer) retryAfter() (time.Duration, bool) {
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
