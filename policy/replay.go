package policy

import (
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
)

// A PastRequest is a request that was decided before, with the evidence.
type PastRequest struct {
	Target  canonical.Target
	Method  string   // as sent; empty: GET
	Whole   bool     // about the whole host, as [Engine.DecideHost]
	Crawler *Crawler // of the configuration at that time
	Tokens  []string // its product tokens then

	Asked  time.Time            // as in Decision
	Judged time.Time            // [snapshot.Resolution].At; zero if robots.txt was not needed
	Answer *snapshot.Snapshot   // as in Resolution; nil if robots.txt was not needed
	Good   *snapshot.Snapshot   // as in Resolution
	TDMRep *snapshot.Resolution // as in Decision; nil if there was none in force
	// Rules returns the rules of the file with a digest, nil if it is gone.
	Rules func(sha256 string) *robotstxt.File
}

// Replay decides about a past request as an Engine with this configuration does, by
// the evidence of that time, without a fetch and before any response. ok is false if it can't be decided, as
// when the rules would decide and are gone.
func (c *Config) Replay(p PastRequest) (d *Decision, ok bool) {
	crawler := *p.Crawler
	crawler.Tokens = p.Tokens // what its User-Agent said then, if it has none of its own
	r := Request{Target: p.Target, Method: p.Method, Crawler: &crawler}
	if p.Whole {
		r.Target.Path, r.whole = "/", true
	}
	d, decided := Overridden(c.Overrides, c.Robots.Readings, r, p.Asked)
	d.Crawler = p.Crawler
	if decided {
		return d, true
	}
	if p.Answer == nil {
		return d, false
	}
	st := c.Robots.ResolveAt(p.Answer, p.Good, p.Judged)
	if st.State == snapshot.Fresh || st.State == snapshot.Stale {
		if st.File = p.Rules(st.Snapshot.SHA256); st.File == nil {
			d.Robots = &st
			return d, false
		}
	}
	d.Robots, d.RobotsURL = &st, snapshot.Scope{Origin: p.Target.Origin()}.URL()
	d.judge(r, c.Robots.Readings)
	if c.Usage.TDMRep && c.wantsTDMRep(r, d) {
		d.TDMRep = p.TDMRep
	}
	c.Usage.judge(d, r, c.Robots.Readings)
	return d, true
}
