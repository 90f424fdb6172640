package policy

import (
	"cmp"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// A Reason says why a decision is what it is.
type Reason string

// The reasons of decisions.
const (
	ByRule        Reason = "rule"        // an Allow or Disallow line
	NoMatch       Reason = "no-match"    // no rule of the group matches
	NoGroup       Reason = "no-group"    // no group is for this crawler
	Implicit      Reason = "implicit"    // robots.txt itself
	ByOverride    Reason = "override"    // the operator's
	IsUnavailable Reason = "unavailable" // there is no robots.txt
	IsUnreachable Reason = "unreachable" // robots.txt can't be fetched, which denies
	TooComplex    Reason = "too-complex" // the rules take too many steps for this URL, which denies
	ByUsage       Reason = "usage"       // robots.txt or tdmrep.json reserves what the crawler fetches for
)

// A Decision is allow or deny, with its reason and evidence.
type Decision struct {
	Allow     bool
	Enforced  bool // false in report mode: a denied request is sent all the same
	Reason    Reason
	Crawler   *Crawler
	Tokens    []string             // the crawler's product tokens
	Token     string               // the one that has a group; else the first; may be ""
	Rule      robotstxt.Rule       // of ByRule
	Group     robotstxt.Group      // the group obeyed, if any
	Note      string               // of ByOverride: the override's reason
	Left      string               // the reason of the override that left the decision to robots.txt; empty: none has
	ReadAs    string               // the reading of the path that is denied; empty if it is the literal one
	Robots    *snapshot.Resolution // the evidence; nil for ByOverride
	RobotsURL string               // of the robots.txt; empty for ByOverride
	TDMRep    *snapshot.Resolution // the origin's tdmrep.json in force; nil: there is none
	Stated    usage.Stated         // what robots.txt and tdmrep.json state for the URL
	Reserved  usage.Preference     // of ByUsage: what reserves a purpose of the crawler
	beside    *Decision            // of ByOverride: what is known beside it, for [Decision.UsageInput]; nil: nothing is
	Asked     time.Time            // when the request was decided; overrides that had expired by then were skipped
}

// Denied reports whether the request must be refused.
func (d *Decision) Denied() bool { return !d.Allow && d.Enforced }

// judge decides by the evidence in d.Robots. All readings of the path share the effort of one decision. If that is
// not enough, judge denies.
func (d *Decision) judge(r Request, readings Readings) {
	effort := robotstxt.NewEffort()
	switch {
	case d.Robots.File != nil:
		d.judgePath(r.Target.Path, &effort)
		d.judgeReadings(r.Target.Path, readings, &effort)
		if r.whole && !d.Allow && d.Reason == ByRule && d.Group.HasAllow() { // the group allows other paths than /
			d.Allow, d.Reason, d.Rule = true, NoMatch, robotstxt.Rule{}
		}
	case robotstxt.IsRobots(r.Target.Path):
		d.Allow, d.Reason = true, Implicit // RFC 9309, 2.2.2
	case d.Robots.Allow:
		d.Allow, d.Reason = true, IsUnavailable
	default:
		d.Reason = IsUnreachable
	}
}

// judgePath decides about one reading of a path by the rules in d.Robots.
func (d *Decision) judgePath(path string, effort *robotstxt.Effort) {
	v := d.Robots.File.DecideWithin(effort, path, d.Tokens...)
	d.Allow, d.Reason, d.Rule, d.Group = v.Allowed, Reason(v.Reason), v.Rule, v.Group
	d.Token = cmp.Or(v.Group.Token(), d.Token)
}

// Judge decides about a target as an Engine does after the origin has
// answered with this status and body. It needs no Engine.
func (r *Robots) Judge(status int, body []byte, t canonical.Target, tokens []string) *Decision {
	res := r.ResolveAnswer(status, body)
	d := &Decision{Enforced: true, Tokens: tokens, Robots: &res}
	if len(tokens) > 0 {
		d.Token = tokens[0]
	}
	request := Request{Target: t}
	d.judge(request, r.Readings)
	Usage{}.judge(d, request, r.Readings)
	return d
}
