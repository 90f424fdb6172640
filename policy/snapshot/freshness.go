package snapshot

import (
	"net/http"
	"time"
)

const (
	// keepFor bounds the use of a cached copy in place of a 4xx (koster-rep-00, 2.3.1.3).
	keepFor = 24 * time.Hour

	firstBackoff = 5 * time.Second
	lastBackoff  = 15 * time.Minute
	// maxRetryAfter bounds what an origin may ask for: a mistyped Retry-After
	// must not close it for a year.
	maxRetryAfter = 24 * time.Hour

	// clockSkew is how far the clock may have been set back since a snapshot was stored.
	clockSkew = time.Minute
)

// Classify returns what an answer means by itself (RFC 9309, 2.3.1): Fresh, Unavailable or Unreachable.
func (c *Settings) Classify(s *Snapshot) State {
	switch {
	case s.good() && !(s.HTML && c.HTML == "unreachable"):
		return Fresh
	case s.Substitute, c.forbids(s), s.Status == http.StatusTooManyRequests && c.TooManyRequests != "allow":
		return Unreachable
	case s.Looped, s.Status >= 400 && s.Status <= 499: // RFC 9309, 2.3.1.2 and 2.3.1.3
		return Unavailable
	}
	return Unreachable
}

// forbids reports whether an answer denies everything to its crawler, whatever else is known of the origin.
func (c *Settings) forbids(s *Snapshot) bool {
	return s != nil && c.Forbidden == "disallow" && s.forbidden()
}

// until returns when a snapshot has to be fetched anew.
func (c *Settings) until(s *Snapshot) time.Time {
	if c.Classify(s) == Unreachable {
		// It doubles with each failure in a row.
		backoff := min(firstBackoff<<min(max(s.Failures-1, 0), 10), lastBackoff)
		return s.Fetched.Add(min(max(backoff, s.Retry), maxRetryAfter))
	}
	life := s.Lifetime
	if life < 0 {
		life = c.MaxAge
	}
	return s.Fetched.Add(min(max(life, c.MinAge), c.MaxAge))
}

// current returns the answer that is valid now, nil if it has to be fetched.
func (c *Settings) current(set *Set, now, asked time.Time) *Snapshot {
	last, good := set.Last, set.Good
	if c.isValid(last, now, asked) && !set.outdated(last) {
		return last
	}
	// After a failure the good copy may still be valid. After a 404 it is not: the
	// origin has removed the file. Nor is it after an answer that forbids everything.
	if good != last && (last == nil || c.Classify(last) == Unreachable && !c.forbids(last)) && c.isValid(good, now, asked) && !set.outdated(good) {
		return good
	}
	return nil
}

// isValid reports whether a snapshot need not be fetched anew. A snapshot that was fetched since
// the request arrived is valid even if its lifetime has ended: an origin may forbid all caching,
// and the request would fetch without end. A snapshot with a time in the future is not
// valid: the clock was wrong when it was stored.
func (c *Settings) isValid(s *Snapshot, now, asked time.Time) bool {
	if s == nil || s.Fetched.After(now.Add(clockSkew)) {
		return false
	}
	if s.HTML && (s.SHA256 == "") != (c.HTML == "unreachable") {
		return false // robots.html was another then, by which the page was kept or not
	}
	return now.Before(c.until(s)) || !s.Fetched.Before(asked)
}

// due reports whether a valid copy should be renewed in the background, so that no request
// to a busy origin waits for it: in the last tenth of its lifetime.
func (c *Settings) due(s *Snapshot, now time.Time) bool {
	until := c.until(s)
	return s.good() && now.Before(until) && now.After(until.Add(-until.Sub(s.Fetched)/10))
}
