package pace

import "slices"

// A line has the requests of one crawler that wait, in order of arrival.
type line struct {
	crawler string
	waiters []*waiter
}

// line returns the line of a crawler, nil if none of its requests wait.
func (o *origin) line(crawler string) *line {
	i := slices.IndexFunc(o.lines, func(l *line) bool { return l.crawler == crawler })
	if i < 0 {
		return nil
	}
	return o.lines[i]
}

// queue adds a request to the line of its crawler, at its place if it waits again. A new line has its turn after all others.
func (o *origin) queue(w *waiter) {
	l := o.line(w.request.Crawler)
	if l == nil {
		l = &line{crawler: w.request.Crawler}
		o.lines = append(o.lines, l)
	}
	i := len(l.waiters)
	for i > 0 && l.waiters[i-1].arrived > w.arrived {
		i--
	}
	l.waiters = slices.Insert(l.waiters, i, w)
	o.waiting++
}

// remove removes a request.
func (o *origin) remove(w *waiter) {
	l := o.line(w.request.Crawler)
	l.waiters = slices.DeleteFunc(l.waiters, func(other *waiter) bool { return other == w })
	o.waiting--
	if len(l.waiters) == 0 {
		o.lines = slices.DeleteFunc(o.lines, func(other *line) bool { return other == l })
	}
}

// passTurn moves the line of a crawler that has had its turn to the end.
func (o *origin) passTurn(crawler string) {
	if l := o.line(crawler); l != nil {
		o.lines = append(slices.DeleteFunc(o.lines, func(other *line) bool { return other == l }), l)
	}
}

// findPlace refuses a request if MaxQueue requests wait for its origin.
func (p *Pacer) findPlace(a *arrival) {
	a.full = a.waits && !a.late() && a.origin != nil && a.origin.waiting >= p.settings.MaxQueue
}
