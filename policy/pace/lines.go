package pace

import (
	"slices"
	"time"
)

// A line has the requests of one crawler that wait. Its clients take turns; the requests of one client are in
// order of arrival.
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

// queue adds a request to the line of its crawler. A new line has its turn after all others.
func (o *origin) queue(w *waiter) {
	l := o.line(w.request.Crawler)
	if l == nil {
		l = &line{crawler: w.request.Crawler}
		o.lines = append(o.lines, l)
	}
	l.waiters = slices.Insert(l.waiters, l.index(w.request.Client, w.arrived), w)
	o.waiting++
}

// index returns where in the line a request that has arrived at a time belongs: after the requests of its
// client that arrived before it, and after as many and one of each other client.
func (l *line) index(client string, arrived time.Duration) int {
	own := 0
	for _, w := range l.waiters {
		if w.request.Client == client && w.arrived <= arrived {
			own++
		}
	}
	if own == len(l.waiters) { // as with one client: the counts that follow take most of the time of a long line
		return own
	}
	passed := map[string]int{}
	for i, w := range l.waiters {
		n := passed[w.request.Client]
		if n > own || n == own && w.request.Client == client {
			return i
		}
		passed[w.request.Client] = n + 1
	}
	return len(l.waiters)
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

// places is the rule that no more than MaxQueue requests wait for one origin.
type places struct{ passive }

func (places) arrive(p *Pacer, a *arrival) {
	if a.waits && !a.late() && a.origin != nil {
		_, ok := a.origin.place(*a.request, p.settings.MaxQueue)
		a.full = !ok
	}
}

// place reports whether a request may wait, so that no more than most do. If so many wait already it takes the
// place of loser: the last request of the crawler with the most waiting, or of the client with the most of the
// request's crawler. The loser's side keeps at least as many places as the request's side has then.
func (o *origin) place(r Request, most int) (loser *waiter, ok bool) {
	if o.waiting < most {
		return nil, true
	}
	own, longest := &line{}, &line{}
	for _, l := range o.lines {
		if l.crawler == r.Crawler {
			own = l
		}
		if len(l.waiters) > len(longest.waiters) {
			longest = l
		}
	}
	if len(longest.waiters) > len(own.waiters)+1 {
		loser, _ = longest.largest()
		return loser, true
	}
	loser, waiting := own.largest()
	if loser != nil && waiting[loser.request.Client] > waiting[r.Client]+1 {
		return loser, true
	}
	return nil, false
}

// largest returns the last request of the client of which most wait, and how many of each do.
func (l *line) largest() (last *waiter, waiting map[string]int) {
	waiting = map[string]int{}
	for _, w := range l.waiters {
		waiting[w.request.Client]++
	}
	for _, w := range l.waiters {
		if last == nil || waiting[w.request.Client] >= waiting[last.request.Client] {
			last = w
		}
	}
	return last, waiting
}
