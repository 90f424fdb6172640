package policy

import (
	"cmp"
	"context"
	"net/http"

	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
	"robotsgate/policy/usage"
)

// This file is about usage preferences: what content may be used for, beside whether it may be fetched. Package
// usage reads them. This file collects its input for a request, and denies requests for reserved content.

// UsageInput returns what is known of the use of a URL before the request for it is sent: what robots.txt
// and tdmrep.json say. The caller adds the response. Path is that of the request's [canonical.Target].
func (d *Decision) UsageInput(path string) usage.Input {
	if d.beside != nil {
		return d.beside.UsageInput(path)
	}
	in := usage.Input{Group: d.Group, Path: path, Denied: !d.Allow && d.Reason != ByUsage}
	if d.Robots != nil {
		in.Robots = d.Robots.File
	}
	if d.TDMRep != nil {
		in.TDMRep = d.TDMRep.TDMRep
	}
	return in
}

// stateBeside adds to d, an override's permission, what robots.txt and tdmrep.json state for the request. The
// override permits what they reserve, but the statements are still reported (draft-ietf-aipref-vocab-08, 5.2).
// Files that can't be read state nothing. The only error is that of ctx.
func (e *Engine) stateBeside(ctx context.Context, r Request, d *Decision) error {
	limited, cancel := context.WithTimeout(ctx, e.config.Robots.Timeout)
	defer cancel()
	res, err := e.snapshots.Resolve(limited, e.robotsFor(r))
	if err != nil {
		return context.Cause(ctx)
	}
	without := *d
	without.Enforced = false // it will be sent
	without.Robots = &res
	without.judge(r, e.config.Robots.Readings)
	if e.config.Usage.TDMRep {
		if without.TDMRep, err = e.tdmrepFor(ctx, r, &without); err != nil {
			return err
		}
	}
	in := without.UsageInput(r.Target.Path)
	in.Effort = new(robotstxt.NewEffort())
	d.Stated, d.beside = usage.Read(&in), &without
	return nil
}

// Judge changes d, which [Robots.Judge] has returned for the target, to a denial if u refuses what is reserved and the
// robots.txt reserves one of the purposes of crawler k, in one of the readings of the path.
func (u Usage) Judge(d *Decision, t canonical.Target, k *Crawler, readings Readings) {
	u.judge(d, Request{Target: t, Crawler: k}, readings)
}

// judge adds to d what robots.txt and tdmrep.json state for the request. It denies an allowed request if u refuses
// what is reserved and a purpose of the crawler is reserved in any reading of the path: a client must not evade a
// statement about /private/ with //private/. All readings share the effort. When it is exhausted, every statement that
// may apply counts.
func (u Usage) judge(d *Decision, r Request, readings Readings) {
	in := d.UsageInput(r.Target.Path)
	if !in.MayState() {
		return
	}
	in.Effort = new(robotstxt.NewEffort())
	d.Stated = usage.Read(&in)
	if !u.Refuses() || !d.Allow || !r.Crawler.Declares() || ForRobots(r.Target, r.Method) {
		return
	}
	by, _, reserved := d.Stated.Reserved(r.Crawler.Purposes, r.Crawler.ContentUse)
	readAs := ""
	if !reserved {
		for _, readAs = range readings.others(r.Target.Path) {
			in.Path = readAs
			if by, _, reserved = usage.Read(&in).Reserved(r.Crawler.Purposes, r.Crawler.ContentUse); reserved {
				break
			}
		}
	}
	if reserved {
		d.Allow, d.Reason, d.Rule, d.Reserved, d.ReadAs = false, ByUsage, robotstxt.Rule{}, by, readAs
	}
}

// ForRobots reports whether a request is for the robots.txt itself. A gate answers it from its own copy. It
// has to be readable for every crawler, since a crawler that checks for itself obeys it.
func ForRobots(t canonical.Target, method string) bool {
	method = cmp.Or(method, http.MethodGet)
	return (method == http.MethodGet || method == http.MethodHead) && robotstxt.IsRobots(t.Path)
}

// tdmrepFor returns the origin's tdmrep.json, as it applies to a request. It returns nil without fetching the file
// if the request will not be sent, or if its crawler may not fetch the file. After a failure the result states
// nothing. tdmrepFor waits for Robots.Timeout at most. The only error is that of ctx.
func (e *Engine) tdmrepFor(ctx context.Context, r Request, d *Decision) (*snapshot.Resolution, error) {
	if !e.config.wantsTDMRep(r, d) {
		return nil, nil
	}
	res, err := e.snapshots.ResolveWithinTimeout(ctx, e.query(snapshot.Scope{Origin: r.Target.Origin(), TDMRep: true}, r.Crawler))
	if err != nil {
		return nil, err
	}
	return &res, nil
}

// wantsTDMRep reports whether the origin's tdmrep.json counts for a request, about which d is the decision: the
// request will be sent, and its crawler may fetch the file as it may any other URL.
func (c *Config) wantsTDMRep(r Request, d *Decision) bool {
	if d.Denied() {
		return false
	}
	file := Request{Target: r.Target, Crawler: r.Crawler, UserAgent: r.UserAgent}
	file.Target.Path = snapshot.TDMRepPath
	own, decided := Overridden(c.Overrides, c.Robots.Readings, file, d.Asked)
	if !decided {
		own.Tokens, own.Robots = d.Tokens, d.Robots
		own.judge(file, c.Robots.Readings)
	}
	return own.Allow
}
