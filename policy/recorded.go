package policy

import (
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy/snapshot"
)

// Record sets the members of a record that state d.
func (d *Decision) Record(r *record.Record) {
	r.Decision = "deny"
	if d.Allow {
		r.Decision = "allow"
	}
	if !d.Allow && !d.Enforced {
		r.Enforced = new(false)
	}
	r.Reason, r.Note, r.ReadAs, r.Group, r.Token, r.Decided = string(d.Reason), d.Note, d.ReadAs, d.Group.Name(), d.Token, d.Asked.UTC()
	if len(d.Tokens) > 1 {
		r.Tokens = d.Tokens
	}
	if d.Reason == ByRule {
		r.Rule, r.Line = d.Rule.String(), d.Rule.Line
	}
	if d.Reason == ByUsage && d.Reserved.Category != "" { // else the page's head could not be read whole
		r.Reserved = new(d.Reserved.Detail())
	}
	if d.Robots != nil {
		r.Robots = d.recorded()
	}
	if d.TDMRep != nil && d.TDMRep.TDMRep != nil {
		r.TDMRep = d.TDMRep.Snapshot.SHA256
	}
}

// recorded returns the evidence of a decision by a robots.txt.
func (d *Decision) recorded() *record.Robots {
	st := d.Robots
	r := &record.Robots{URL: d.RobotsURL, State: string(st.State), Judged: st.At.UTC(), From: string(st.From), Answer: recordedAnswer(st.Snapshot)}
	// The difference of the recorded times: st.Age does not include the time that the machine was asleep.
	r.Age = int64(max(r.Judged.Round(0).Sub(r.Fetched.Round(0)), 0) / time.Second)
	if st.Answer != nil && st.Answer != st.Snapshot {
		r.Instead = new(recordedAnswer(st.Answer))
	}
	if st.Good != nil && st.Good != st.Snapshot {
		r.Copy = new(recordedAnswer(st.Good))
	}
	return r
}

func recordedAnswer(s *snapshot.Snapshot) record.Answer {
	a := record.Answer{Status: s.Status, SHA256: s.SHA256, Fetched: s.Fetched.UTC(), Since: s.Since.UTC(), HTML: s.HTML, Looped: s.Looped, Substitute: s.Substitute}
	if s.Lifetime >= 0 {
		a.Lifetime = new(s.Lifetime.Seconds())
	}
	return a
}
