package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/snapshot"
)

const (
	// maxStep is how far a correction of the clock may set it back.
	maxStep = time.Second
	// maxLoginWait bounds the wait before the decision begins, mainly for the login.
	maxLoginWait = 30 * time.Second
	// maxDelay bounds what a busy machine adds to the fetches that a request waits for.
	maxDelay = 15 * time.Second
)

// checkTimes states which times of an entry do not fit together; empty: they do. A request arrives, then the overrides
// are evaluated, then the robots.txt. So an entry can't cite evidence of another time.
func checkTimes(c *policy.Config, r *record.Record) string {
	type step struct {
		name  string
		at    time.Time
		limit time.Duration // after the step before
	}
	before := step{name: "time", at: r.Time}
	steps := []step{{"decided", r.Decided, maxLoginWait}}
	if r.Robots != nil {
		steps = append(steps, step{"judged", r.Robots.Judged, 2*c.Robots.Timeout + maxDelay})
	}
	for _, s := range steps {
		if took := s.at.Sub(before.at); took < -maxStep || took > s.limit {
			return fmt.Sprintf("its times don't fit together: %s %s, %s %s", before.name, utc(before.at), s.name, utc(s.at))
		}
		before = s
	}
	if r.Robots == nil {
		return ""
	}
	for _, a := range []*record.Answer{&r.Robots.Answer, r.Robots.Instead, r.Robots.Copy} {
		if a != nil && a.Fetched.Sub(before.at) > maxStep {
			return fmt.Sprintf("its times don't fit together: fetched %s, judged %s", utc(a.Fetched), utc(before.at))
		}
	}
	age := max(before.at.Sub(r.Robots.Fetched), 0) / time.Second
	if off := time.Duration(r.Robots.Age) - age; off < -2 || off > 2 { // in seconds
		return fmt.Sprintf("its times don't fit together: age %d, from fetched to judged it is %d s", r.Robots.Age, age)
	}
	return ""
}

// wereInForce checks in the histories that the answers that a decision cites were the origin's at that time.
func (p *Replayer) wereInForce(r *record.Record, c *policy.Config, past policy.PastRequest) (Outcome, string) {
	history, err := p.history(r.Origin)
	if err != nil {
		return Changed, err.Error()
	}
	for _, s := range []*snapshot.Snapshot{past.Answer, past.Good} {
		if s == nil || s.Substitute {
			continue
		}
		if !inForce(history, c, past.Judged, func(a snapshot.Answer) bool {
			return a.Snapshot.Status == s.Status && a.Snapshot.Looped == s.Looped && a.Snapshot.SHA256 == s.SHA256 &&
				!s.Fetched.Before(a.From) && !s.Fetched.After(a.Snapshot.Fetched)
		}) {
			return Gone, fmt.Sprintf("the history has no robots.txt of status %d %s that was fetched at %s and in force at %s",
				s.Status, s.SHA256, utc(s.Fetched), utc(past.Judged))
		}
	}
	if r.TDMRep == "" {
		return Same, ""
	}
	if history, err = p.tdmHistory(r.Origin); err != nil {
		return Changed, err.Error()
	}
	if !inForce(history, c, past.Judged, func(a snapshot.Answer) bool { return a.Snapshot.SHA256 == r.TDMRep }) {
		return Gone, fmt.Sprintf("the history has no tdmrep.json %s that was in force at %s", r.TDMRep, utc(past.Judged))
	}
	return Same, ""
}

// inForce reports whether a history has a matching answer that was in force at a time.
func inForce(history []snapshot.Answer, c *policy.Config, at time.Time, matches func(snapshot.Answer) bool) bool {
	// A decision uses the latest answer that has been read. The next one is in force from the
	// start of its fetch, and used after the end.
	late := 2*c.Robots.Timeout + 5*time.Second
	return slices.ContainsFunc(history, func(a snapshot.Answer) bool {
		return matches(a) && !a.From.After(at.Add(late)) && (a.To.IsZero() || !at.After(a.To.Add(late)))
	})
}

// snapshotOf returns the snapshot of an answer, without its body.
func snapshotOf(a *record.Answer) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Status: a.Status, SHA256: a.SHA256, Fetched: a.Fetched, Since: a.Since, HTML: a.HTML, Looped: a.Looped, Substitute: a.Substitute, Lifetime: -1}
	if a.Lifetime != nil {
		s.Lifetime = time.Duration(math.Round(*a.Lifetime * float64(time.Second)))
	}
	return s
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
