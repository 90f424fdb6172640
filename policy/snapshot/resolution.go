package snapshot

import (
	"time"

	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
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
	TDMRep   *usage.TDMFile  // in place of File, of a tdmrep.json
	Allow    bool            // without rules: whether everything is allowed, or nothing
	Age      time.Duration   // since Snapshot was fetched or confirmed
	Retry    time.Duration   // Unreachable: until the next fetch
	From     Layer           // where the evidence was found; empty in the result of [Resolver.Peek]

	// The input, for a decision that is made again.
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

// ResolveAt returns what an answer means at a time, beside the last good copy for the same asker, nil
// if there is none. The result has no File.
func (c *Settings) ResolveAt(answer, good *Snapshot, now time.Time) Resolution {
	if !good.good() || c.Classify(good) != Fresh {
		good = nil // the caller may have it from a file that was changed, or it is a page, which no longer counts
	}
	res := Resolution{State: c.Classify(answer), Snapshot: answer, At: now, Answer: answer, Good: good}
	obeyCopy := false
	switch res.State {
	case Unavailable:
		obeyCopy = c.Unavailable == "keep" && good != nil && now.Before(answer.Since.Add(keepFor))
		if c.tdmrep && good != nil && !answer.aboutFile() { // a firewall's 403, say: nothing was withdrawn
			obeyCopy = now.Before(good.Fetched.Add(c.StaleFor)) || now.Before(c.until(good))
		}
		res.Allow = true
	case Unreachable:
		res.Retry = max(c.until(answer).Sub(now), 0)
		if c.forbids(answer) {
			break
		}
		since := answer.Since
		if good != nil {
			since = good.Fetched
			// An early renewal may have failed: a copy that is still fresh is obeyed
			// even if no stale one may be.
			obeyCopy = now.Before(c.until(good)) || now.Before(since.Add(c.StaleFor)) || c.AfterStale == "keep"
		}
		res.Allow = c.AfterStale == "allow" && !now.Before(since.Add(c.StaleFor)) && !answer.Substitute
	}
	if obeyCopy {
		res.State, res.Snapshot, res.Allow, res.Retry = Stale, good, false, 0
		if now.Before(c.until(good)) {
			res.State = Fresh
		}
	}
	res.Age = max(now.Sub(res.Snapshot.Fetched), 0)
	return res
}

// ResolveAnswer returns what an answer with this status and body means that has just been fetched.
func (c *Settings) ResolveAnswer(status int, body []byte) Resolution {
	now := time.Now()
	s := &Snapshot{Status: status, Fetched: now, Since: now}
	var file content
	if s.good() {
		file = c.keepFile(s, robotstxt.Parse(body, int(c.MaxBytes)))
	}
	res := c.ResolveAt(s, nil, now)
	if file != nil {
		res.setFile(file)
		res.Good = s
	}
	return res
}
