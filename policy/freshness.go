package policy

import (
	"fmt"
	"net/http"
	"time"

	"robotsgate/policy/robotstxt"
)

// Robots are the operator's settings for fetching, keeping and reading robots.txt.
type Robots struct {
	MaxAge          time.Duration // upper bound on freshness
	MinAge          time.Duration // lower bound
	StaleFor        time.Duration // how long the last good copy serves while robots.txt is unreachable
	AfterStale      string        // then: "disallow" (also if empty), "allow" or "keep" the copy
	Timeout         time.Duration // of a whole fetch
	MaxBytes        int           // of a decoded robots.txt; a longer one is cut
	MaxRedirects    int
	TooManyRequests string // a 429 means "disallow" (also if empty) or "allow"
	Unavailable     string // a 4xx means "allow" (also if empty), or "keep" the last good copy
	UserAgent       string // for fetching; empty: the asking crawler's
	CacheBytes      int64
	Readings        Readings // how paths are judged that servers read in several ways

	reserved map[string]bool // product tokens that are configured: they always have a slot
}

// DefaultRobots returns the settings that suit most crawlers.
func DefaultRobots() Robots {
	return Robots{
		MaxAge: 24 * time.Hour, MinAge: 5 * time.Minute, StaleFor: 30 * 24 * time.Hour, AfterStale: "disallow",
		Timeout: 10 * time.Second, MaxBytes: 512 << 10, MaxRedirects: 5,
		TooManyRequests: "disallow", Unavailable: "allow", CacheBytes: 64 << 20, Readings: Strict,
	}
}

// check reports values that an Engine can't work with.
func (r *Robots) check() error {
	for _, v := range []struct {
		name     string
		positive bool
	}{
		{"MaxAge", r.MaxAge > 0}, {"Timeout", r.Timeout > 0}, {"MaxBytes", r.MaxBytes > 0}, {"CacheBytes", r.CacheBytes > 0},
	} {
		if !v.positive {
			return fmt.Errorf("policy: Robots.%s must be positive; DefaultRobots has a value for it", v.name)
		}
	}
	return nil
}

// A State says what stands behind the rules that are obeyed.
type State string

// The states of a robots.txt.
const (
	Fresh       State = "fresh"       // fetched or confirmed not long ago
	Stale       State = "stale"       // the last good copy, because a newer one can't be had
	Unavailable State = "unavailable" // a 4xx: the origin has no rules (RFC 9309, 2.3.1.3)
	Unreachable State = "unreachable" // no answer: nothing is allowed (RFC 9309, 2.3.1.4)
)

const (
	// keepFor bounds the use of a cached copy in place of a 4xx (koster-rep-00, 2.3.1.3).
	keepFor = 24 * time.Hour

	firstBackoff = 5 * time.Second
	lastBackoff  = 15 * time.Minute
	// maxRetryAfter bounds what an origin may ask for: a mistyped Retry-After
	// must not close it for a year.
	maxRetryAfter = 24 * time.Hour

	// clockSkew is how far the clock may have been set back since a snapshot was stored.
	clockSkew = time.Minute
)

// A Resolution is what an origin's robots.txt means to one crawler at one time.
type Resolution struct {
	State    State
	Snapshot *Snapshot       // the evidence: the copy obeyed, or the answer that stands for its absence
	File     *robotstxt.File // the rules obeyed; nil unless State is Fresh or Stale
	Allow    bool            // without rules: whether everything is allowed, or nothing
	Age      time.Duration   // since Snapshot was fetched or confirmed
	Retry    time.Duration   // Unreachable: until the next fetch
	From     Layer           // where the evidence was found; empty where nobody asked for it

	// What it follows from, for [Config.Replay].
	At     time.Time // as of when it was judged
	Answer *Snapshot // what the origin answers the crawler: Snapshot, unless a copy stands in for it
	Good   *Snapshot // the last that held rules; nil without
}

// A Layer is a place where an origin's robots.txt may be found, the nearest first.
type Layer string

// The layers.
const (
	InMemory Layer = "memory"
	InStore  Layer = "store"
	Fetched  Layer = "fetch" // waited for, also where another request had it fetched
)

// class says what an answer means, RFC 9309, 2.3.1.
func (r *Robots) class(s *Snapshot) State {
	switch {
	case s.good():
		return Fresh
	case s.Others:
		return Unreachable
	case s.Looped:
		return Unavailable // RFC 9309, 2.3.1.2
	case s.Status == http.StatusTooManyRequests && r.TooManyRequests != "allow":
		return Unreachable
	case s.Status >= 400 && s.Status <= 499:
		return Unavailable
	}
	return Unreachable
}

// until returns when a snapshot has to be fetched anew.
func (r *Robots) until(s *Snapshot) time.Time {
	if r.class(s) == Unreachable {
		return s.Fetched.Add(min(max(backoff(s.Failures), s.Retry), maxRetryAfter))
	}
	life := s.Lifetime
	if life < 0 {
		life = r.MaxAge
	}
	return s.Fetched.Add(min(max(life, r.MinAge), r.MaxAge))
}

// backoff returns the wait after so many failures in a row.
func backoff(failures int) time.Duration {
	wait := firstBackoff
	for i := 1; i < failures && wait < lastBackoff; i++ {
		wait *= 2
	}
	return min(wait, lastBackoff)
}

// current returns the answer that holds for a crawler now, nil if it has to be
// asked for. A crawler's own answer goes before the origin's, and that before
// what is for those who can't have an answer of their own.
func (r *Robots) current(rec *Record, token string, now, asked time.Time) *Snapshot {
	if s := r.holding(rec, rec.Bound[token], rec.Copies[token], now, asked); s != nil {
		return s
	}
	if s := r.holding(rec, rec.Last, rec.Good, now, asked); s != nil {
		return s
	}
	if s := rec.Bound[others]; r.holds(s, now, asked) && !r.hasSlot(rec, nil, token, now) {
		return s
	}
	return nil
}

// holding returns which of the last answer and the last good copy holds, nil if none does.
func (r *Robots) holding(rec *Record, last, good *Snapshot, now, asked time.Time) *Snapshot {
	if r.holds(last, now, asked) && !rec.outdated(last) {
		return last
	}
	// After a failure the good copy may still hold. After a 404 it does not: the
	// origin has taken it back.
	if good != last && (last == nil || r.class(last) == Unreachable) && r.holds(good, now, asked) && !rec.outdated(good) {
		return good
	}
	return nil
}

// holds reports whether a snapshot need not be fetched anew. What was fetched
// since the crawler asked counts in any case: an origin that forbids all
// caching would else be fetched from without end. What comes from the future
// does not count: the clock was wrong when it was stored, and it would hold for
// as long as that.
func (r *Robots) holds(s *Snapshot, now, asked time.Time) bool {
	if s == nil || s.Fetched.After(now.Add(clockSkew)) {
		return false
	}
	return now.Before(r.until(s)) || !s.Fetched.Before(asked)
}

// due reports whether a copy that still holds should be renewed in the
// background, so that no request of a busy origin ever waits for it: when it is
// asked for in the last tenth of its life. Not by those who share an answer with many,
// while that holds: each of them would try again.
func (r *Robots) due(rec *Record, token string, s *Snapshot, now time.Time) bool {
	until := r.until(s)
	return s.good() && now.Before(until) && now.After(until.Add(-until.Sub(s.Fetched)/10)) &&
		(!r.holds(rec.Bound[others], now, now.Add(1)) || r.hasSlot(rec, nil, token, now))
}

// resolution judges what current has returned, beside the last good copy for the same crawler.
func (r *Robots) resolution(s, good *Snapshot, now time.Time) Resolution {
	st := r.means(s, good, now)
	st.At, st.Answer, st.Good = now, s, good
	return st
}

func (r *Robots) means(s, good *Snapshot, now time.Time) Resolution {
	switch r.class(s) {
	case Fresh:
		return Resolution{State: Fresh, Snapshot: s, Age: age(s, now)}
	case Unavailable:
		if r.Unavailable == "keep" && good != nil && now.Before(s.Since.Add(keepFor)) {
			return r.copyOf(good, now)
		}
		return Resolution{State: Unavailable, Snapshot: s, Allow: true, Age: age(s, now)}
	}
	since := s.Since
	if good != nil {
		since = good.Fetched
		// A renewal before its time may have failed: what is still fresh serves
		// on, even where nothing stale may.
		if now.Before(r.until(good)) || now.Before(since.Add(r.StaleFor)) || r.AfterStale == "keep" {
			return r.copyOf(good, now)
		}
	}
	return Resolution{
		State:    Unreachable,
		Snapshot: s,
		Allow:    r.AfterStale == "allow" && !now.Before(since.Add(r.StaleFor)) && !s.Others,
		Age:      age(s, now),
		Retry:    max(r.until(s).Sub(now), 0),
	}
}

// copyOf is the last good copy, standing in for an answer that can't be had. It
// may still be fresh.
func (r *Robots) copyOf(good *Snapshot, now time.Time) Resolution {
	st := Resolution{State: Stale, Snapshot: good, Age: age(good, now)}
	if now.Before(r.until(good)) {
		st.State = Fresh
	}
	return st
}

// age is how long ago a snapshot was fetched or confirmed.
func age(s *Snapshot, now time.Time) time.Duration { return max(now.Sub(s.Fetched), 0) }
