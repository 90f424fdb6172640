package pace

import (
	"slices"
	"time"
)

// A Reservation asks for a start. Times are distances, since the clocks of gates differ.
type Reservation struct {
	Key      string        // of starts that count together, such as an origin
	Interval time.Duration // to the start before, of any gate
	Starts   int           // so many may be in Interval, instead of one; 0: one
	Step     time.Duration // starts in one step are counted together; 0: none are
	Missed   int           // with Step: so many starts that were not reserved are to count as of now
	Since    time.Duration // since this gate's own last start, which is to count; negative: it knows of none
	Longest  time.Duration // a start that is farther away is not reserved; negative: none is
	Memory   time.Duration // how long starts count
	Returned time.Duration // a start that was reserved and is given back; 0: none
}

// A Grant is the answer to a [Reservation].
type Grant struct {
	Wait  time.Duration // until the start
	Start time.Duration // by the clock; 0: it is farther away than the reservation permits, and not reserved
	Left  int           // with Step: so many further starts would be granted now
}

// Starts are the last starts with one key, the latest first. Times are by one clock, which began at 0: a 0 at
// the end says that there was no start before.
//
// It is the one definition of what all gates of a fleet count; scripts/reserve.lua of internal/fleet is the same
// in the store's language, and is tested against it.
type Starts []Step

// A Step is some starts that are counted together.
type Step struct {
	Last time.Duration // of them
	N    int
}

const (
	maxStarts = 8              // of a reservation without steps
	maxSteps  = 66             // of one with steps, of which a [Limit] has 64
	farAhead  = 24 * time.Hour // starts beyond are by a clock that was set back
)

// Reserve reserves the next start: now, or as soon as fewer than r.Starts are in the interval before it,
// whichever is later. Before that it applies r.Returned, r.Since and r.Missed, also if it then reserves nothing.
func (s *Starts) Reserve(r Reservation, now time.Duration) (g Grant) {
	all := *s
	if len(all) == 0 || slices.ContainsFunc(all, func(s Step) bool { return s.Last > now+farAhead }) {
		all = Starts{{}}
	}
	// The last of a list that was cut stays, since the start before it is not known.
	if i := slices.IndexFunc(all, func(s Step) bool { return s.Last == r.Returned }); r.Returned != 0 && i >= 0 && i < len(all)-1 {
		all = slices.Delete(all, i, i+1)
	}
	if last := now - r.Since; r.Since >= 0 && last > all[0].Last {
		all = slices.Insert(all, 0, Step{last, 1})
	}
	if r.Step > 0 && r.Missed > 0 {
		all = all.with(Step{now, r.Missed}, r.Step)
	}
	start, sum, most := now, 0, max(r.Starts, 1)
	for _, step := range all {
		if sum += step.N; sum >= most && step.Last > 0 {
			start = max(now, step.Last+r.Interval)
			break
		}
	}
	g.Wait = start - now
	if g.Wait <= r.Longest {
		g.Start = start
		all = all.with(Step{start, 1}, r.Step)
	}
	keep := maxStarts
	if r.Step > 0 {
		keep = maxSteps
		g.Left = max(most-all.within(r.Interval, now), 0)
		all = slices.DeleteFunc(all, func(s Step) bool { return s.Last == 0 || s.Last+r.Interval <= now })
	}
	*s = all[:min(len(all), keep)]
	return g
}

// with returns the starts with further ones, which are the latest. Those in one step are counted together; 0: none are.
func (s Starts) with(last Step, step time.Duration) Starts {
	if step > 0 && len(s) > 0 && s[0].Last > 0 && last.Last/step == s[0].Last/step {
		s[0] = Step{last.Last, s[0].N + last.N}
		return s
	}
	return slices.Insert(s, 0, last)
}

// within returns how many starts are in the interval that ends now, and after it.
func (s Starts) within(interval, now time.Duration) (n int) {
	for _, step := range s {
		if step.Last > 0 && step.Last > now-interval {
			n += step.N
		}
	}
	return n
}
