package snapshot

import (
	"slices"
	"strings"
	"time"
)

// An answer that binds one crawler only has a slot: the entry of the configuration that caused the fetch, and the
// product token. Clients that match no entry count as one more, with an empty name. Two entries with
// the same token have two slots: an origin may tell them apart, by signature or address.
//
// A client can invent product tokens without end. So each entry has at most 16 slots for tokens that its
// clients chose, beside the slot of its configured token. Clients of the entry without a slot share one further
// answer, which is fetched for one of them. It denies even if it is a 4xx: an answer to one crawler must not open the
// origin to another.

// NoSlot stands for the product token in the slot of the answer that clients without a slot share.
const NoSlot = "(others)"

// Slot returns the key in [Set.Bound] and [Set.Copies] for answers that bind one crawler only: the name of its entry in
// the configuration, and the first of its product tokens. Slots of earlier versions are a [TokenKey] alone, which is never
// equal.
func Slot(crawler string, tokens []string) string { return slotOf(crawler, TokenKey(tokens)) }

func slotOf(crawler, tokenKey string) string { return crawler + "/" + tokenKey }

// TokenKey returns the key of the crawler with these product tokens, of which the first counts. It
// is part of a [Slot]; an empty list is "*".
func TokenKey(tokens []string) string {
	if len(tokens) == 0 {
		return "*"
	}
	return strings.ToLower(tokens[0])
}

// SplitSlot returns the crawler and the TokenKey of a slot. ok is false for one of an earlier version, which
// has no crawler. There is no slash in a product token.
func SplitSlot(slot string) (crawler, tokenKey string, ok bool) {
	i := strings.LastIndexByte(slot, '/')
	if i < 0 {
		return "", slot, false
	}
	return slot[:i], slot[i+1:], true
}

// isNoSlot reports whether a slot is the one that clients without a slot share.
func isNoSlot(slot string) bool { return strings.HasSuffix(slot, "/"+NoSlot) }

// noSlot returns the slot that clients without one share, of the same entry.
func noSlot(slot string) string {
	crawler, _, _ := SplitSlot(slot)
	return slotOf(crawler, NoSlot)
}

const (
	// maxBound is the number of slots of an entry for tokens that its clients chose.
	maxBound = 16

	// When the lifetime of the answer in a slot has ended, the slot is kept for as long again,
	// within these bounds, so that a crawler that sends another request by then does not lose it.
	minKept = 5 * time.Minute
	maxKept = time.Hour
)

// hasSlot reports whether a crawler has its slot, or there is a free one for it.
// A crawler with a job has one.
func (c *Settings) hasSlot(set *Set, jobs map[string]*fetchJob, slot string, now time.Time) bool {
	if c.reserved[slot] {
		return true
	}
	shared, taken := noSlot(slot), 0
	counts := func(other string) bool { return other != slot && !c.reserved[other] && noSlot(other) == shared }
	for other, s := range set.allOwn() {
		if counts(other) && jobs[other] == nil && now.Before(c.freeFrom(s, now)) {
			taken++
		}
	}
	for other := range jobs {
		if counts(other) {
			taken++
		}
	}
	return taken < maxBound
}

// reserve returns the slots that are always there: these, and the one that clients of each of their entries share.
func reserve(slots []string) map[string]bool {
	all := map[string]bool{}
	for _, slot := range slots {
		all[slot], all[noSlot(slot)] = true, true
	}
	return all
}

// freeFrom returns when the slot with this answer is free. An answer from
// the future was stored while the clock was wrong, and takes no slot.
func (c *Settings) freeFrom(s *Snapshot, now time.Time) time.Time {
	if s.Fetched.After(now.Add(clockSkew)) {
		return time.Time{}
	}
	until := c.until(s)
	return until.Add(min(max(until.Sub(s.Fetched), minKept), maxKept))
}

// vacate drops answers from a set until the slots of each entry suffice, first from the slots that have been
// free for longest, and all of entries that are not configured any more. The set has not been handed out
// yet. hasSlot has made sure that enough slots are free.
func (c *Settings) vacate(set *Set, jobs map[string]*fetchJob, now time.Time) {
	taken, free := map[string]int{}, map[string][]string{} // by the slot that their entry shares
	for slot := range set.allOwn() {
		if c.reserved[slot] {
			continue
		}
		entry := noSlot(slot)
		if _, _, ok := SplitSlot(slot); !ok {
			entry = "" // of an earlier version
		}
		taken[entry]++
		if jobs[slot] == nil {
			free[entry] = append(free[entry], slot)
		}
	}
	for entry, slots := range free {
		most := 0
		if c.reserved[entry] {
			most = maxBound
		}
		slices.SortFunc(slots, func(a, b string) int { return c.freeFrom(set.own(a), now).Compare(c.freeFrom(set.own(b), now)) })
		for _, slot := range slots[:min(max(taken[entry]-most, 0), len(slots))] {
			delete(set.Bound, slot)
			delete(set.Copies, slot)
		}
	}
}
