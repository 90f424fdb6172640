package pace

import "time"

// A rule is a reason for which requests wait or are refused.
type rule interface {
	// arrive delays or refuses a request by what this gate knows.
	arrive(p *Pacer, a *arrival)
	// admit reports whether a request that has its turn may start; if not, it waits for another turn. An
	// error refuses it. admit is called without the lock, since it may ask the other gates.
	admit(p *Pacer, t *Turn) (bool, error)
	// observed counts a request of report mode, which has started whatever the rule says.
	observed(p *Pacer, t *Turn)
	// answered applies the answer of the origin. It may release the lock meanwhile.
	answered(p *Pacer, t *Turn, a Response)
}

// passive is a rule that does nothing. Others embed it for the methods that they do not need.
type passive struct{}

func (passive) arrive(*Pacer, *arrival)           {}
func (passive) admit(*Pacer, *Turn) (bool, error) { return true, nil }
func (passive) observed(*Pacer, *Turn)            {}
func (passive) answered(*Pacer, *Turn, Response)  {}

// An arrival is a request that is to start, and what the rules have said of it so far.
type arrival struct {
	request  *Request
	origin   *origin // nil: nothing is known of it
	now      time.Duration
	deadline time.Duration

	at      time.Duration // when the turn of the request would come
	by      Source        // what delays it
	waits   bool          // it may not start at once
	refused bool          // it may not wait
	full    bool          // there is no place for it
	limit   Limit         // that is reached
}

// foresee returns what the rules say of a request, which is an estimate if other requests wait. O may be nil.
func (p *Pacer) foresee(o *origin, r *Request, now, deadline time.Duration) *arrival {
	a := &arrival{request: r, origin: o, now: now, deadline: deadline, at: now}
	for _, rule := range rules {
		rule.arrive(p, a)
	}
	if !a.waits {
		a.by = ""
	}
	return a
}

// late reports whether the turn would come too late.
func (a *arrival) late() bool { return a.waits && (a.refused || a.at > a.deadline) }

// err returns the error for a request that is refused, or nil.
func (a *arrival) err() error {
	if a.late() || a.full {
		return a.tooLate(!a.late())
	}
	return nil
}

// tooLate returns the error for the request.
func (a *arrival) tooLate(full bool) *TooLate {
	return &TooLate{After: max(a.at-a.now, 0), By: a.by, Full: full, Distance: a.request.distance, Limit: a.limit}
}
