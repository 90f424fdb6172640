package response

import (
	"math/rand/v2"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/pace"
)

// A Paced request is one that the pace concerns.
type Paced struct {
	Delay  time.Duration // the distance to keep; for a back-off how long the pause goes on
	Source pace.Source   // "": only the turns of other requests
	// Announced is set with ByMinDelay if a Crawl-delay that is not shorter is only to be reported. The header
	// reports that.
	Announced bool
	Line      int           // of the Crawl-delay
	Held      time.Duration // the request has waited; in report mode: would have
	// Retry is the time until the request's turn, for which it was not held, but refused; in report
	// mode: would have been.
	Retry    time.Duration
	Refused  bool
	Reported bool // the crawler is in report mode: nothing of this has happened
	Budget   Budget
}

// A Budget is a limit on a number of requests that counts a request. The zero value is none.
type Budget struct {
	pace.Limit
	Refused bool // nothing was left for this request; in report mode it was sent all the same
}

// delays reports whether a distance, a pause or a turn concerns the request.
func (p *Paced) delays() bool {
	without := *p
	without.Budget, without.Reported = Budget{}, false
	return without != (Paced{})
}

// Waited returns how long the request has waited.
func (p *Paced) Waited() time.Duration {
	if p.Reported {
		return 0
	}
	return p.Held
}

// PacedBy returns what has set the pace of a request.
func PacedBy(distance pace.Distance, d *policy.Decision) Paced {
	p := Paced{Delay: distance.Interval, Source: distance.By}
	delay, line, ok := d.Group.CrawlDelay()
	switch distance.By {
	case pace.ByCrawlDelay:
		p.Line = line
	case pace.ByMinDelay:
		p.Announced = ok && delay >= distance.Interval.Seconds()
	}
	return p
}

// Hold notes that the request has waited.
func (p *Paced) Hold(d time.Duration, by pace.Source) {
	p.Held = d
	if by == pace.ByPause {
		p.Delay, p.Source, p.Line = d, pace.ByPause, 0
	}
}

// Refuse notes that the request was not held.
func (p *Paced) Refuse(late *pace.TooLate) {
	if late.By == pace.ByBudget {
		*p = Paced{Reported: p.Reported, Budget: Budget{late.Limit, true}}
		return
	}
	p.Refused, p.Retry = true, retryAfter(late)
	if late.By == pace.ByPause {
		p.Delay, p.Source, p.Line = late.After, pace.ByPause, 0
	}
}

// retryAfter returns up to 10% more than the time until a request's turn, so that clients that were refused together do
// not come back together.
func retryAfter(late *pace.TooLate) time.Duration {
	return late.After + time.Duration(rand.Int64N(int64(late.After)/10+1))
}
