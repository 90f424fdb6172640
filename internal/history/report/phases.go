package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"robotsgate/internal/history"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
)

// A phase is a period in which the same rules were in force.
type phase struct {
	at     time.Time
	state  snapshot.State // or stateRules
	from   time.Time      // of the answer that is in force
	status int
	sha256 string // rules
	allow  bool   // without rules: everything; else nothing
}

// stateRules is the state of an answer that has rules, which may be fresh or stale.
const stateRules snapshot.State = "rules"

// phasesOf returns the phases of an asker, the oldest first.
func phasesOf(answers []snapshot.Answer, rules *snapshot.Settings, now time.Time) (all []phase) {
	var times []time.Time // at which other rules may come into force
	for _, a := range answers {
		copied := a.Snapshot.Fetched
		times = append(times, a.From, a.To, a.From.Add(24*time.Hour), copied.Add(rules.StaleFor), copied.Add(max(rules.StaleFor, rules.MaxAge)))
	}
	slices.SortFunc(times, time.Time.Compare)
	for _, at := range slices.CompactFunc(times, time.Time.Equal) {
		if at.After(now) {
			break
		}
		if v, ok := phaseAt(answers, rules, at); ok && (len(all) == 0 || !all[len(all)-1].same(v)) {
			all = append(all, v)
		}
	}
	return all
}

// phaseAt returns the rules in force at a time, by the answers to one asker.
// It is not ok if there is no answer of that time.
func phaseAt(answers []snapshot.Answer, rules *snapshot.Settings, at time.Time) (v phase, ok bool) {
	var last, good *snapshot.Answer // without and with rules
	for i := range answers {
		a := &answers[i]
		switch {
		case a.From.After(at) || !a.To.IsZero() && !at.Before(a.To):
		case a.Snapshot.SHA256 != "":
			good = a
		default:
			last = a
		}
	}
	answer := cmp.Or(last, good)
	if answer == nil {
		return phase{}, false
	}
	var copied *snapshot.Snapshot
	if good != nil {
		copied = good.Snapshot
	}
	st := rules.ResolveAt(answer.Snapshot, copied, at)
	v = phase{at: at, state: st.State, from: answer.From, status: st.Snapshot.Status, allow: st.Allow}
	if st.State == snapshot.Fresh || st.State == snapshot.Stale {
		v.state, v.sha256 = stateRules, st.Snapshot.SHA256
		if st.Snapshot == copied {
			v.from = good.From
		}
	}
	return v, true
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
	if v.state == snapshot.Unreachable {
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
	case v.state == snapshot.Unreachable && v.allow:
		return "allow (unreachable)"
	case v.state == snapshot.Unreachable:
		return "deny (unreachable)"
	}
	return "allow (no robots.txt)"
}
