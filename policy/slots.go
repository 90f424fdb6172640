package policy

import (
	"slices"
	"time"
)

// An origin may answer each crawler differently, and a client can invent
// product tokens without end. So a bounded number of crawlers have a slot: the
// answers that bind them are kept, and each asks for itself; crawlers whose product
// tokens are configured have one besides, which nobody can take. All others share
// one further answer, for which one of them asks. It denies even if it is a
// 4xx, which would open the origin to them because of what another was told.
const (
	maxBound = 16

	// others is what the shared answer is kept under: no product token.
	others = "(others)"

	// A slot is kept for a while after its answer has ended, for as long again
	// within these bounds: whoever comes back in time does not lose it to
	// somebody new.
	leastKept = 5 * time.Minute
	mostKept  = time.Hour
)

// hasSlot reports whether a crawler has a slot, or there is a free one for it.
// Who is running holds one.
func (r *Robots) hasSlot(rec *Record, jobs map[string]*fetchJob, token string, now time.Time) bool {
	if r.reserved[token] {
		return true
	}
	taken := 0
	for t, s := range rec.allOwn() {
		if t != token && r.counts(t) && jobs[t] == nil && now.Before(r.leaves(s, now)) {
			taken++
		}
	}
	for t := range jobs {
		if t != token && r.counts(t) {
			taken++
		}
	}
	return taken < maxBound
}

// counts reports whether an answer under this key is one of those that are bounded.
func (r *Robots) counts(key string) bool { return key != others && !r.reserved[key] }

// reserve keeps slots for the crawlers that are configured.
func (r *Robots) reserve(c Crawlers) {
	r.reserved = map[string]bool{}
	for _, k := range append(slices.Clone(c.Known), c.Default) {
		if k != nil && len(k.Tokens) > 0 {
			r.reserved[tokenKey(k.Tokens)] = true
		}
	}
}

// leaves returns when the slot of the crawler with this answer is free. One from
// the future was stored while the clock was wrong, and holds no slot.
func (r *Robots) leaves(s *Snapshot, now time.Time) time.Time {
	if s.Fetched.After(now.Add(clockSkew)) {
		return time.Time{}
	}
	until := r.until(s)
	return until.Add(min(max(until.Sub(s.Fetched), leastKept), mostKept))
}

// vacate drops the answers that are too many from a record that has not been handed out yet,
// those first whose slots have been free for longest. Seated has made sure that there are
// enough of them.
func (r *Robots) vacate(rec *Record, jobs map[string]*fetchJob, now time.Time) {
	slots := 0
	for t := range rec.allOwn() {
		if r.counts(t) {
			slots++
		}
	}
	for ; slots > maxBound; slots-- {
		victim := ""
		for t, s := range rec.allOwn() {
			if !r.counts(t) || jobs[t] != nil {
				continue
			}
			if victim == "" || r.leaves(s, now).Before(r.leaves(rec.own(victim), now)) {
				victim = t
			}
		}
		delete(rec.Bound, victim)
		delete(rec.Copies, victim)
	}
}
