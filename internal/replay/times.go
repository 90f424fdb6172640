package replay

import (
	"fmt"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
)

const (
	// maxStep is how far a correction of the clock may set it back.
	maxStep = time.Second
	// maxLoginWait bounds the wait before the decision begins, mainly for the login.
	maxLoginWait = 30 * time.Second
	// maxDelay bounds what a busy machine adds to the fetches that a request waits for.
	maxDelay = 15 * time.Second
)

// checkTimes states which times of an entry do not fit together; empty: they do. A request
// arrives, then the overrides are evaluated, then the robots.txt, which was fetched before.
// So an entry can't cite evidence of another time.
func checkTimes(c *policy.Config, r *record.Record) string {
	why := ""
	// order checks that a time is not before another, and at most limit after it, unless
	// limit is negative.
	order := func(first string, from time.Time, then string, to time.Time, limit time.Duration) {
		switch took := to.Sub(from); {
		case why != "":
		case took < -maxStep:
			why = fmt.Sprintf("its times don't fit together: %s %s is before %s %s", then, utc(to), first, utc(from))
		case limit >= 0 && took > limit:
			why = fmt.Sprintf("its times don't fit together: %s %s is later after %s %s than a request may wait", then, utc(to), first, utc(from))
		}
	}
	order("time", r.Time, "decided", r.Decided, maxLoginWait)
	if r.Robots == nil {
		return why
	}
	judged := r.Robots.Judged
	order("decided", r.Decided, "judged", judged, 2*c.Robots.Timeout+maxDelay)
	for _, a := range []*record.Answer{&r.Robots.Answer, r.Robots.Instead, r.Robots.Copy} {
		if a != nil {
			order("fetched", a.Fetched, "judged", judged, -1)
		}
	}
	age := max(judged.Sub(r.Robots.Fetched), 0)
	if off := time.Duration(r.Robots.Age) - age/time.Second; why == "" && (off < -2 || off > 2) { // in seconds
		why = fmt.Sprintf("its times don't fit together: age %d, from fetched to judged it is %d s", r.Robots.Age, age/time.Second)
	}
	return why
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
