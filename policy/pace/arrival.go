package pace

import "time"

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
	p.awaitTurn(a)
	a.awaitPause()
	p.findPlace(a)
	p.fitBudget(a)
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
