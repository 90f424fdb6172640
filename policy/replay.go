package policy

import (
	"time"

	"robotsgate/policy/robotstxt"
)

// A PastRequest is a request that has been decided about, with what the decision
// followed from.
type PastRequest struct {
	Target  Target
	Whole   bool     // about the whole host, as [Engine.DecideHost]
	Crawler *Crawler // of the configuration at that time
	Tokens  []string // its product tokens then

	Asked  time.Time // as in Decision
	Judged time.Time // [Resolution.At]; zero if robots.txt was not looked at
	Answer *Snapshot // as in Resolution; nil if robots.txt was not looked at
	Good   *Snapshot // as in Resolution
	// Rules returns those of the file that a digest names, nil if that is gone.
	Rules func(sha256 string) *robotstxt.File
}

// Again decides about a past request as an Engine with this configuration has, from
// the same evidence and as of the same time. It asks nobody. If that can't be told, as
// where the rules would decide and are gone, ok is false.
func (c *Config) Replay(p PastRequest) (d Decision, ok bool) {
	crawler := *p.Crawler
	crawler.Tokens = p.Tokens // what its User-Agent said then, if it has none of its own
	r := Request{Target: p.Target, Crawler: &crawler}
	if p.Whole {
		r.Target.Path, r.whole = "/", true
	}
	d, decided := byOverride(c.Overrides, c.Robots.Readings, r, p.Asked)
	d.Crawler = p.Crawler
	if decided {
		return d, true
	}
	if p.Answer == nil {
		return d, false
	}
	st := c.Robots.ResolveAt(p.Answer, p.Good, p.Judged)
	if st.State == Fresh || st.State == Stale {
		if st.File = p.Rules(st.Snapshot.SHA256); st.File == nil {
			d.Robots = &st
			return d, false
		}
	}
	d.Robots, d.URL = &st, p.Target.Origin()+"/robots.txt"
	d.judge(r.Target, c.Robots.Readings)
	if p.Whole {
		d.forHost()
	}
	return d, true
}

// ResolveAt judges an answer as of a time, beside the last good copy, nil if there is none.
// The rules themselves are left out.
func (r *Robots) ResolveAt(answer, good *Snapshot, at time.Time) Resolution {
	if !good.good() {
		good = nil // as newEntry has it
	}
	return r.resolution(answer, good, at)
}

// TokenKey names the crawler with these product tokens in [Record.Bound].
func TokenKey(tokens []string) string { return tokenKey(tokens) }

// SharedSlot is what an answer is kept under in [Record.Bound] that many crawlers
// share.
const SharedSlot = others

// Substitute reports whether a snapshot is not what an origin has answered, but what
// the gate says in its place when it can't ask in time.
func (s *Snapshot) Substitute() bool { return s.Others && s.Status == 0 }

// Classify says what an answer means by itself, whatever else is known of its origin:
// Fresh, Unavailable or Unreachable.
func (r *Robots) Classify(s *Snapshot) State { return r.class(s) }
