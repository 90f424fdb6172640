package policy

import (
	"time"

	"robotsgate/policy/robotstxt"
)

// A State says what the origin's robots.txt is to a crawler.
type State string

// The states of a robots.txt.
const (
	Fresh       State = "fresh"       // fetched or confirmed not long ago
	Stale       State = "stale"       // the last good copy, because a newer one can't be fetched
	Unavailable State = "unavailable" // a 4xx: the origin has no rules (RFC 9309, 2.3.1.3)
	Unreachable State = "unreachable" // no answer: nothing is allowed (RFC 9309, 2.3.1.4)
)

// A Resolution is what an origin's robots.txt means to one crawler at one time.
type Resolution struct {
	State    State
	Snapshot *Snapshot       // the evidence: the copy obeyed, or the answer that there is none
	File     *robotstxt.File // the rules obeyed; nil unless State is Fresh or Stale
	Allow    bool            // without rules: whether everything is allowed, or nothing
	Age      time.Duration   // since Snapshot was fetched or confirmed
	Retry    time.Duration   // Unreachable: until the next fetch
	From     Layer           // where the evidence was found; empty in the result of [Engine.Peek]

	// The input, for [Config.Replay].
	At     time.Time // the time that it is for
	Answer *Snapshot // the origin's answer to the crawler: Snapshot, unless a copy is obeyed in its place
	Good   *Snapshot // the last that held rules; nil without
}

// A Layer is a place where an origin's robots.txt may be found.
type Layer string

// The layers, in the order in which they are tried.
const (
	InMemory Layer = "memory"
	InStore  Layer = "store"
	Fetched  Layer = "fetch" // the request waited for a fetch, its own or another request's
)

// resolution returns what an answer means, beside the last good copy for the same crawler.
func (r *Robots) resolution(answer, good *Snapshot, now time.Time) Resolution {
	res := r.resolve(answer, good, now)
	res.At, res.Answer, res.Good = now, answer, good
	return res
}

func (r *Robots) resolve(s, good *Snapshot, now time.Time) Resolution {
	switch r.class(s) {
	case Fresh:
		return Resolution{State: Fresh, Snapshot: s, Age: age(s, now)}
	case Unavailable:
		if r.Unavailable == "keep" && good != nil && now.Before(s.Since.Add(keepFor)) {
			return r.obeyCopy(good, now)
		}
		return Resolution{State: Unavailable, Snapshot: s, Allow: true, Age: age(s, now)}
	}
	since := s.Since
	if good != nil {
		since = good.Fetched
		// An early renewal may have failed: a copy that is still fresh is obeyed
		// even if no stale one may be.
		if now.Before(r.until(good)) || now.Before(since.Add(r.StaleFor)) || r.AfterStale == "keep" {
			return r.obeyCopy(good, now)
		}
	}
	return Resolution{
		State:    Unreachable,
		Snapshot: s,
		Allow:    r.AfterStale == "allow" && !now.Before(since.Add(r.StaleFor)) && !s.NoSlot,
		Age:      age(s, now),
		Retry:    max(r.until(s).Sub(now), 0),
	}
}

// obeyCopy obeys the last good copy, since no newer answer has rules. It may still be fresh.
func (r *Robots) obeyCopy(good *Snapshot, now time.Time) Resolution {
	res := Resolution{State: Stale, Snapshot: good, Age: age(good, now)}
	if now.Before(r.until(good)) {
		res.State = Fresh
	}
	return res
}

// age is the time since a snapshot was fetched or confirmed.
func age(s *Snapshot, now time.Time) time.Duration { return max(now.Sub(s.Fetched), 0) }
