package policy

import (
	"fmt"
	"net/http"
	"time"

	"robotsgate/internal/field"
	"robotsgate/policy/usage"
)

// Robots are the operator's settings for fetching, keeping and reading robots.txt.
type Robots struct {
	MaxAge            time.Duration `yaml:"max_age"`                                // upper bound on freshness
	MinAge            time.Duration `yaml:"min_age"`                                // lower bound
	StaleFor          time.Duration `yaml:"stale_for"`                              // how long the last good copy serves while robots.txt is unreachable; 0: not at all
	AfterStale        string        `yaml:"after_stale" enum:"disallow,allow,keep"` // then: "disallow" (also if empty), "allow" or "keep" the copy
	Timeout           time.Duration `yaml:"timeout" positive:"yes"`                 // of a whole fetch, redirects included
	MaxBytes          int           `yaml:"max_bytes" size:"yes" restart:"yes"`     // of a decoded robots.txt; a longer one is cut
	MaxRedirects      int           `yaml:"max_redirects" doc:"a whole number, such as 5"`
	TooManyRequests   string        `yaml:"too_many_requests" enum:"disallow,allow"`               // a 429 means "disallow" (also if empty) or "allow"
	Unavailable       string        `yaml:"unavailable" enum:"allow,keep"`                         // a 4xx means "allow" (also if empty), or "keep" the last good copy
	UnreachableStatus int           `yaml:"unreachable_status" enum:"403,503"`                     // of a refusal because robots.txt is unreachable; 0: 403
	Forbidden         string        `yaml:"forbidden" enum:"allow,disallow"`                       // a 401 or 403 means "allow" (also if empty), as any other 4xx, or "disallow"
	Readings          Readings      `yaml:"readings" enum:"strict,literal"`                        // how paths are judged that servers read in several ways
	UserAgent         string        `yaml:"user_agent" doc:"a User-Agent, such as ExampleBot/1.0"` // for fetching; empty: see Engine.agentFor
	CacheBytes        int64         `yaml:"cache_bytes" size:"yes" restart:"yes" positive:"yes"`

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
		Timeout: 10 * time.Second, MaxBytes: 512 << 10, MaxRedirects: 5, TooManyRequests: "disallow", Unavailable: "allow",
		UnreachableStatus: http.StatusForbidden, Forbidden: "allow", Readings: Strict, CacheBytes: 64 << 20,
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

// Check reports values that make no sense. A MinAge that is not given is at most MaxAge.
func (r *Robots) Check(m *field.Mistakes) {
	m.Require(r.MaxAge > 0 && r.MaxAge <= 24*time.Hour, "max_age", "%s is out of bounds: more than 0s and at most 24h (RFC 9309, section 2.4)", field.Duration(r.MaxAge))
	// A shorter max_age alone must not conflict with the default of min_age.
	if !m.Given("min_age") {
		r.MinAge = min(r.MinAge, r.MaxAge)
	}
	if !m.Bad("max_age") {
		m.Require(r.MinAge <= r.MaxAge, "min_age", "%s is more than robots.max_age, %s", field.Duration(r.MinAge), field.Duration(r.MaxAge))
	}
	m.Require(r.MaxBytes >= 500<<10, "max_bytes", "%s is too little: at least 500KiB (RFC 9309, section 2.5)", field.Size(r.MaxBytes))
	m.Require(r.MaxRedirects >= 0 && r.MaxRedirects <= 20, "max_redirects", "%d is out of bounds: 0 to 20", r.MaxRedirects)
}

// Warn reports values that are allowed but are probably not intended.
func (r *Robots) Warn(m *field.Mistakes) {
	m.Require(r.MaxRedirects >= 5, "max_redirects", "%d: RFC 9309, section 2.3.1.2 asks to follow at least five", r.MaxRedirects)
}

// Usage says what is done about usage preferences. The zero value reports what is stated, and refuses nothing.
type Usage struct {
	Reserved Reserved `yaml:"reserved" enum:"annotate,refuse"`
	TDMRep   bool     `yaml:"tdmrep"` // fetch /.well-known/tdmrep.json from origins too
	Unread   Unread   `yaml:"unread" enum:"pass,refuse"`

	memo *usage.Memo // of what robots.txt states; nil: none
}

// Reserved says what becomes of a crawler's request or response if one of its purposes is reserved.
type Reserved string

// What becomes of it.
const (
	AnnotateReserved Reserved = "annotate" // it is only annotated; also if empty
	RefuseReserved   Reserved = "refuse"
)

// Unread says what becomes of a page for a crawler with purposes if its head was not read whole, so
// that a preference may be missing.
type Unread string

// What becomes of it.
const (
	PassUnread   Unread = "pass"   // also if empty
	RefuseUnread Unread = "refuse" // only with RefuseReserved
)

// DefaultUsage returns the settings of a gate that refuses nothing.
func DefaultUsage() Usage { return Usage{Reserved: AnnotateReserved, Unread: PassUnread} }

// Refuses reports whether what reserves a purpose of its crawler is refused.
//
// So is it with a value that is none of the constants: a misspelt one must not open.
func (u Usage) Refuses() bool { return u.Reserved != "" && u.Reserved != AnnotateReserved }

// Check reports fields that contradict each other.
func (u Usage) Check(m *field.Mistakes) {
	m.Require(u.Unread != RefuseUnread || u.Refuses(), "unread", "refuse needs usage.reserved: refuse: nothing is refused otherwise")
}
