package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"robotsgate/internal/history"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/robotstxt"
)

// A phase is what was obeyed from one time to the next.
type phase struct {
	at     time.Time
	state  obeyed
	from   time.Time // since when there was such an answer
	status int
	sha256 string // rules
	allow  bool   // without rules: everything; else nothing
}

// An obeyed says of what kind that was.
type obeyed string

const rulesObeyed obeyed = "rules"

// phasesOf returns what was obeyed by a crawler that answers may have bound, "" for all
// others, the oldest first.
func phasesOf(answers []store.Answer, whom string, rules *policy.Robots, now time.Time) (all []phase) {
	for _, at := range turns(answers, whom, rules, now) {
		own, last, good := inForce(answers, whom, at)
		answer := cmp.Or(own, last, good)
		if answer == nil {
			continue
		}
		v := phaseOf(answer, good, rules, at)
		if n := len(all); n == 0 || !all[n-1].same(v) {
			all = append(all, v)
		}
	}
	return all
}

func phaseOf(answer, good *store.Answer, rules *policy.Robots, at time.Time) phase {
	var copied *policy.Snapshot
	if good != nil {
		copied = good.Snapshot
	}
	st := rules.ResolveAt(answer.Snapshot, copied, at)
	v := phase{at: at, state: obeyed(st.State), from: answer.From, status: st.Snapshot.Status, allow: st.Allow}
	if st.State == policy.Fresh || st.State == policy.Stale {
		v.state, v.sha256 = rulesObeyed, st.Snapshot.SHA256
		if good != nil && st.Snapshot == good.Snapshot {
			v.from = good.From
		}
	}
	return v
}

// inForce returns the answers of a time: to the crawler alone, the last that is for all
// and has no rules, and the last that has rules, which may be the crawler's own.
func inForce(answers []store.Answer, whom string, at time.Time) (own, last, good *store.Answer) {
	var ownGood *store.Answer
	for i := range answers {
		a := &answers[i]
		switch {
		case a.From.After(at) || !a.To.IsZero() && !at.Before(a.To):
		case a.Token == "" && a.Snapshot.SHA256 != "":
			good = a
		case a.Token == "":
			last = a
		case a.Token == whom && a.Snapshot.SHA256 != "":
			ownGood = a
		case a.Token == whom:
			own = a
		}
	}
	if ownGood == nil || good != nil && good.Snapshot.Fetched.After(ownGood.Snapshot.Fetched) {
		return own, last, good
	}
	if own == nil && (last == nil || !last.From.After(ownGood.Snapshot.Fetched)) {
		own = ownGood
	}
	return own, last, ownGood
}

// turns returns the times at which something else may be obeyed: when an answer comes or
// goes, and when the copy that stands in for one may not do so any longer.
func turns(answers []store.Answer, whom string, rules *policy.Robots, now time.Time) (all []time.Time) {
	for _, a := range answers {
		if a.Token != "" && a.Token != whom {
			continue
		}
		all = append(all, a.From)
		end := now
		if !a.To.IsZero() {
			all = append(all, a.To)
			end = a.To
		}
		if a.Snapshot.SHA256 != "" {
			continue
		}
		if _, _, good := inForce(answers, whom, a.From); good != nil {
			for _, at := range []time.Time{good.Snapshot.Fetched.Add(max(rules.StaleFor, rules.MaxAge)), good.Snapshot.Fetched.Add(rules.StaleFor), a.From.Add(24 * time.Hour)} {
				if at.After(a.From) && at.Before(end) {
					all = append(all, at)
				}
			}
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}

func (v phase) same(w phase) bool {
	return v.state == w.state && v.sha256 == w.sha256 && v.allow == w.allow
}

// String names the phase for people.
func (v phase) String() string {
	if v.sha256 != "" {
		return v.sha256
	}
	what, all := "no robots.txt", "denied"
	if v.state == obeyed(policy.Unreachable) {
		what = "unreachable"
	}
	if v.status != 0 {
		what += fmt.Sprintf(" (%d)", v.status)
	}
	if v.allow {
		all = "allowed"
	}
	return what + ": everything is " + all
}

// decides words a decision.
func (v phase) decides(d robotstxt.Verdict) string {
	switch {
	case v.sha256 != "":
		return history.Words(d)
	case v.state == obeyed(policy.Unreachable) && v.allow:
		return "allow (unreachable)"
	case v.state == obeyed(policy.Unreachable):
		return "deny (unreachable)"
	}
	return "allow (no robots.txt)"
}
