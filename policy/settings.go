package policy

import (
	"fmt"
	"time"
)

// Robots are the operator's settings for fetching, keeping and reading robots.txt.
type Robots struct {
	MaxAge          time.Duration // upper bound on freshness
	MinAge          time.Duration // lower bound
	StaleFor        time.Duration // how long the last good copy serves while robots.txt is unreachable
	AfterStale      string        // then: "disallow" (also if empty), "allow" or "keep" the copy
	Timeout         time.Duration // of a whole fetch
	MaxBytes        int           // of a decoded robots.txt; a longer one is cut
	MaxRedirects    int
	TooManyRequests string // a 429 means "disallow" (also if empty) or "allow"
	Forbidden       string // a 401 or 403 means "allow" (also if empty), as any other 4xx, or "disallow"
	Unavailable     string // a 4xx means "allow" (also if empty), or "keep" the last good copy
	UserAgent       string // for fetching; empty: see Engine.agentFor
	CacheBytes      int64
	Readings        Readings // how paths are judged that servers read in several ways

	// HideRedirects keeps of a redirect's destination no more than its origin, unless its path is that of the file:
	// a parent proxy that gets a login may repeat it in the rest, which the status page and errors would show.
	HideRedirects bool

	reserved map[string]bool // slots that are always there, see reserve
	tdmrep   bool            // these are the settings for tdmrep.json, see ForTDMRep
}

// DefaultRobots returns the settings that suit most crawlers.
func DefaultRobots() Robots {
	return Robots{
		MaxAge: 24 * time.Hour, MinAge: 5 * time.Minute, StaleFor: 30 * 24 * time.Hour, AfterStale: "disallow",
		Timeout: 10 * time.Second, MaxBytes: 512 << 10, MaxRedirects: 5,
		TooManyRequests: "disallow", Forbidden: "allow", Unavailable: "allow", CacheBytes: 64 << 20, Readings: Strict,
	}
}

// check reports values that an Engine can't work with.
func (r *Robots) check() error {
	for i, value := range []int64{int64(r.MaxAge), int64(r.Timeout), int64(r.MaxBytes), r.CacheBytes} {
		if value <= 0 {
			name := []string{"MaxAge", "Timeout", "MaxBytes", "CacheBytes"}[i]
			return fmt.Errorf("policy: Robots.%s must be positive; DefaultRobots has a value for it", name)
		}
	}
	return nil
}
