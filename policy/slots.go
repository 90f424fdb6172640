package policy

import (
	"slices"
	"time"
)

// NoSlot is the key in [Record.Bound] of the answer that all crawlers share for which no own
// answer is kept: at most 16 are, and those of crawlers with configured product tokens. It is not
// a product token.
//
// An origin may answer each crawler differently, and a client can invent product tokens without
// end. So only a bounded number of crawlers have a slot: answers that bind one of them are kept,
// and each of them fetches for itself. Crawlers with configured product tokens always have a slot,
// beside that number. All others share one further answer, which is fetched for one of them. It
// denies even if it is a 4xx: an answer to one crawler must not open the origin to another.
const NoSlot = "(others)"

const (
	// maxBound is the number of slots, beside those of configured crawlers.
	maxBound = 16

	// When the lifetime of the answer in a slot has ended, the slot is kept for as long again,
	// within these bounds, so that a crawler that sends another request by then does not lose it.
	minKept = 5 * time.Minute
	maxKept = time.Hour
)

// hasSlot reports whether a crawler has a slot, or there is a free one for it.
// A crawler with a job has one.
func (r *Robots) hasSlot(rec *Record, jobs map[string]*fetchJob, token string, now time.Time) bool {
	if r.reserved[token] {
		return true
	}
	taken := 0
	for t, s := range rec.allOwn() {
		if t != token && !r.reserved[t] && jobs[t] == nil && now.Before(r.freeFrom(s, now)) {
			taken++
		}
	}
	for t := range jobs {
		if t != token && !r.reserved[t] {
			taken++
		}
	}
	return taken < maxBound
}

// reserve keeps slots for the crawlers that are configured, and one for all without a slot.
func (r *Robots) reserve(c Crawlers) {
	r.reserved = map[string]bool{NoSlot: true}
	for _, k := range append(slices.Clone(c.Known), c.Default) {
		if k != nil && len(k.Tokens) > 0 {
			r.reserved[TokenKey(k.Tokens)] = true
		}
	}
}

// freeFrom returns when the slot with this answer is free. An answer from
// the future was stored while the clock was wrong, and takes no slot.
func (r *Robots) freeFrom(s *Snapshot, now time.Time) time.Time {
	if s.Fetched.After(now.Add(clockSkew)) {
		return time.Time{}
	}
	until := r.until(s)
	return until.Add(min(max(until.Sub(s.Fetched), minKept), maxKept))
}

// vacate drops answers from a record until the slots suffice, first from the slots that have been
// free for longest. The record has not been handed out yet. hasSlot has made sure that enough
// slots are free.
func (r *Robots) vacate(rec *Record, jobs map[string]*fetchJob, now time.Time) {
	slots, free := 0, []string{}
	for t := range rec.allOwn() {
		if !r.reserved[t] {
			slots++
			if jobs[t] == nil {
				free = append(free, t)
			}
		}
	}
	slices.SortFunc(free, func(a, b string) int { return r.freeFrom(rec.own(a), now).Compare(r.freeFrom(rec.own(b), now)) })
	for _, t := range free[:min(max(slots-maxBound, 0), len(free))] {
		delete(rec.Bound, t)
		delete(rec.Copies, t)
	}
}
