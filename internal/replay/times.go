package replay

import (
	"fmt"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/policy"
)

const (
	// tick is how far clocks that are set right may take a time back.
	tick = time.Second
	// loginWait bounds how long a request waits before anything is decided: for its login
	// above all.
	loginWait = 30 * time.Second
	// busy is what a machine with too much to do adds to the fetches that a request waits for.
	busy = 15 * time.Second
)

// untimely says what does not fit together in the times of a record; it is empty if they
// do. A request comes, overrides are looked at, then robots.txt, which was fetched before:
// so evidence of another time can't be cited, nor moved.
func untimely(c *policy.Config, r *audit.Record) string {
	why := ""
	// order notes that a time is before another, or, unless most is negative, long after it.
	order := func(first string, from time.Time, then string, to time.Time, most time.Duration) {
		switch took := to.Sub(from); {
		case why != "":
		case took < -tick:
			why = fmt.Sprintf("its times don't fit together: %s %s is before %s %s", then, utc(to), first, utc(from))
		case most >= 0 && took > most:
			why = fmt.Sprintf("its times don't fit together: %s %s is later after %s %s than a request may wait", then, utc(to), first, utc(from))
		}
	}
	order("time", r.Time, "decided", r.Decided, loginWait)
	if r.Robots == nil {
		return why
	}
	judged := r.Robots.Judged
	order("decided", r.Decided, "judged", judged, 2*c.Robots.Timeout+busy)
	for _, a := range []*audit.Answer{&r.Robots.Answer, r.Robots.Instead, r.Robots.Copy} {
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
