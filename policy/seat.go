package policy

import "time"

// An origin may answer each crawler differently, and a client can invent
// product tokens without end. So a bounded number of crawlers have a seat: the
// answers that bind them are kept, and each asks for itself. All others share
// one further answer, for which one of them asks. It denies even if it is a
// 4xx, which would open the origin to them because of what another was told.
const (
	maxBound = 16

	// others is what the shared answer is kept under: no product token.
	others = "(others)"

	// A seat is kept for a while after its answer has ended, for as long again
	// within these bounds: whoever comes back in time does not lose it to
	// somebody new.
	leastKept = 5 * time.Minute
	mostKept  = time.Hour
)

// seated reports whether a crawler has a seat, or there is a free one for it.
// Who is flying holds one.
func (r *Robots) seated(rec *Record, flights map[string]*flight, token string, now time.Time) bool {
	taken := 0
	for t, s := range rec.Bound {
		if t != others && t != token && flights[t] == nil && now.Before(r.leaves(s, now)) {
			taken++
		}
	}
	for t := range flights {
		if t != others && t != token {
			taken++
		}
	}
	return taken < maxBound
}

// leaves returns when the seat of the crawler with this answer is free. One from
// the future was stored while the clock was wrong, and holds no seat.
func (r *Robots) leaves(s *Snapshot, now time.Time) time.Time {
	if s.Fetched.After(now.Add(clockSkew)) {
		return time.Time{}
	}
	until := r.until(s)
	return until.Add(min(max(until.Sub(s.Fetched), leastKept), mostKept))
}

// vacate drops the answers that are too many, those first whose seats have been
// free for longest. Seated has made sure that there are enough of them.
func (r *Robots) vacate(bound map[string]*Snapshot, flights map[string]*flight, now time.Time) {
	seats := len(bound)
	if bound[others] != nil {
		seats--
	}
	for ; seats > maxBound; seats-- {
		victim := ""
		for t, s := range bound {
			if t == others || flights[t] != nil {
				continue
			}
			if victim == "" || r.leaves(s, now).Before(r.leaves(bound[victim], now)) {
				victim = t
			}
		}
		delete(bound, victim)
	}
}
