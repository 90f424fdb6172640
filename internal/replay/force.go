package replay

import (
	"fmt"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/store"
	"robotsgate/policy"
)

// wasInForce checks that the answers that a decision follows from were the origin's, at
// that time and for that crawler.
func (p *Replayer) wasInForce(r *audit.Record, c *policy.Config, past policy.Past) (Outcome, string) {
	history, err := p.history(r.Origin)
	if err != nil {
		return Unreadable, err.Error()
	}
	for _, s := range []*policy.Snapshot{past.Answer, past.Good} {
		if s == nil || s.Invented() {
			continue
		}
		if !p.answered(history, s, r, c, past) {
			return NotInForce, fmt.Sprintf("the history has no answer of status %d %s that was fetched at %s and in force at %s",
				s.Status, s.SHA256, s.Fetched.Format(time.RFC3339Nano), past.Judged.Format(time.RFC3339Nano))
		}
	}
	return Same, ""
}

// answered looks for a snapshot in a history.
func (p *Replayer) answered(history []store.Answer, s *policy.Snapshot, r *audit.Record, c *policy.Config, past policy.Past) bool {
	// A decision is made by what is known then: the next answer is under way from when it
	// begins to when it is read.
	late := 2*c.Robots.Timeout + 5*time.Second
	for _, a := range history {
		if a.Token != "" && a.Token != policy.BoundTo(past.Tokens) && a.Token != policy.ForOthers {
			continue
		}
		if !p.says(a.Snapshot, s, r.Origin, c.Robots.MaxBytes) || s.Fetched.Before(a.From) || s.Fetched.After(a.Snapshot.Fetched) {
			continue
		}
		if a.To.IsZero() || !past.Judged.After(a.To.Add(late)) {
			return true
		}
	}
	return false
}

// says reports whether a kept answer is the one that a record cites.
func (p *Replayer) says(a, s *policy.Snapshot, origin string, maxBytes int) bool {
	if a.Status != s.Status || a.Looped != s.Looped || a.Others != s.Others {
		return false
	}
	if a.SHA256 == s.SHA256 {
		return true
	}
	if a.SHA256 == "" || s.SHA256 == "" {
		return false
	}
	f, err := p.rulesOf(origin, s.SHA256, maxBytes)
	if err != nil {
		return false
	}
	body, err := p.evidence.Body(a.SHA256)
	return err == nil && len(body) > len(f.Body()) && body[:len(f.Body())] == f.Body()
}
