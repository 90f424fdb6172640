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

// A phase is a period in which the same rules were in force.
type phase struct {
	at     time.Time
	state  phaseState
	from   time.Time // of the answer that is in force
	status int
	sha256 string // rules
	allow  bool   // without rules: everything; else nothing
}

// A phaseState is "rules", or the state without rules.
type phaseState string

const stateRules phaseState = "rules"

// phasesOf returns the phases for a crawler with this product token, "" for crawlers whose
// token no answer is bound to, the oldest first.
func phasesOf(answers []store.Answer, token string, rules *policy.Robots, now time.Time) (all []phase) {
	for _, at := range changeTimes(answers, token, rules, now) {
		own, last, good := inForce(answers, token, at)
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
	v := phase{at: at, state: phaseState(st.State), from: answer.From, status: st.Snapshot.Status, allow: st.Allow}
	if st.State == policy.Fresh || st.State == policy.Stale {
		v.state, v.sha256 = stateRules, st.Snapshot.SHA256
		if good != nil && st.Snapshot == good.Snapshot {
			v.from = good.From
		}
	}
	return v
}

// inForce returns the answers in force at a time: the answer to the crawler alone, the last
// answer to all without rules, and the last answer with rules, which may be to the crawler
// alone.
func inForce(answers []store.Answer, token string, at time.Time) (own, last, good *store.Answer) {
	var ownGood *store.Answer
	for i := range answers {
		a := &answers[i]
		switch {
		case a.From.After(at) || !a.To.IsZero() && !at.Before(a.To):
		case a.Token == "" && a.Snapshot.SHA256 != "":
			good = a
		case a.Token == "":
			last = a
		case a.Token == token && a.Snapshot.SHA256 != "":
			ownGood = a
		case a.Token == token:
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

// changeTimes returns the times at which other rules may come into force: when an answer
// begins or ends, and when a stale copy may no longer be used.
func changeTimes(answers []store.Answer, token string, rules *policy.Robots, now time.Time) (all []time.Time) {
	for _, a := range answers {
		if a.Token != "" && a.Token != token {
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
		if _, _, good := inForce(answers, token, a.From); good != nil {
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

// String describes the phase, for people.
func (v phase) String() string {
	if v.sha256 != "" {
		return v.sha256
	}
	what, all := "no robots.txt", "denied"
	if v.state == phaseState(policy.Unreachable) {
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

// decides returns a decision in words.
func (v phase) decides(d robotstxt.Verdict) string {
	switch {
	case v.sha256 != "":
		return history.Words(d)
	case v.state == phaseState(policy.Unreachable) && v.allow:
		return "allow (unreachable)"
	case v.state == phaseState(policy.Unreachable):
		return "deny (unreachable)"
	}
	return "allow (no robots.txt)"
}
