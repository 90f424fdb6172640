package replay

import (
	"fmt"
	"math"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/snapshot"
)

// wasInForce checks that the answers that a decision cites were the origin's, at that time and
// for that crawler.
func (p *Replayer) wasInForce(r *record.Record, c *policy.Config, past policy.PastRequest) (Outcome, string) {
	history, err := p.history(r.Origin)
	if err != nil {
		return Unreadable, err.Error()
	}
	for _, s := range []*snapshot.Snapshot{past.Answer, past.Good} {
		if s == nil || s.Substitute {
			continue
		}
		found, until := p.answered(history, s, c, past)
		if !until.IsZero() {
			// A second gate with the same folder has a cache of its own, which may be older.
			return NotInForce, fmt.Sprintf("judged %s is after another answer took the place of the one that was fetched %s, at %s",
				utc(past.Judged), utc(s.Fetched), utc(until))
		}
		if !found {
			return NotInForce, fmt.Sprintf("the history has no answer %s that was fetched at %s and in force at %s; %s",
				statusOf(s), utc(s.Fetched), utc(past.Judged), inHistory(history, s.Fetched))
		}
	}
	return Same, ""
}

// statusOf names an answer.
func statusOf(s *snapshot.Snapshot) string {
	if s.SHA256 == "" {
		return fmt.Sprintf("of status %d", s.Status)
	}
	return fmt.Sprintf("of status %d, %s,", s.Status, s.SHA256)
}

// inHistory describes the answer that a history has for a time.
func inHistory(history []snapshot.Answer, at time.Time) string {
	what := "it has none of that time"
	for _, a := range history {
		if !at.Before(a.From) && (a.To.IsZero() || !at.After(a.To)) {
			what = fmt.Sprintf("it has one %s since %s", statusOf(a.Snapshot), a.From.UTC().Format(time.RFC3339))
		}
	}
	return what
}

// answered looks for a snapshot in a history. Until is when another had replaced it, if that
// was before the decision.
func (p *Replayer) answered(history []snapshot.Answer, s *snapshot.Snapshot, c *policy.Config, past policy.PastRequest) (found bool, until time.Time) {
	// A decision uses the latest answer that has been read. The next one is in force from the
	// start of its fetch, and used after the end.
	late := 2*c.Robots.Timeout + 5*time.Second
	for _, a := range history {
		if !p.matches(past.Target.Origin(), a.Snapshot, s, c.Robots.MaxBytes) || s.Fetched.Before(a.From) || s.Fetched.After(a.Snapshot.Fetched) {
			continue
		}
		if a.To.IsZero() || !past.Judged.After(a.To.Add(late)) {
			return true, time.Time{}
		}
		if a.To.After(until) {
			until = a.To
		}
	}
	return false, until
}

// matches reports whether a kept answer is the one that an entry cites, whole or truncated by
// the limit of that time.
func (p *Replayer) matches(origin string, a, s *snapshot.Snapshot, maxBytes int) bool {
	if a.Status != s.Status || a.Looped != s.Looped {
		return false
	}
	return a.SHA256 == s.SHA256 || s.SHA256 != "" && p.truncatedTo(fileKey{origin, a.SHA256, maxBytes}) == s.SHA256
}

// snapshotOf returns the snapshot of an answer, without its body.
func snapshotOf(a *record.Answer) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Status: a.Status, SHA256: a.SHA256, Fetched: a.Fetched, Since: a.Since, HTML: a.HTML, Looped: a.Looped, Substitute: a.Substitute, Lifetime: -1}
	if a.Lifetime != nil {
		s.Lifetime = time.Duration(math.Round(*a.Lifetime * float64(time.Second)))
	}
	return s
}
