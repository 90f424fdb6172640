package policy

import (
	"net/http"

	"robotsgate/internal/field"
	"robotsgate/policy/snapshot"
)

// Robots are the operator's settings for fetching, keeping and reading robots.txt.
type Robots struct {
	snapshot.Settings `yaml:",inline"` // for decoders that need it
	UnreachableStatus int              `yaml:"unreachable_status" enum:"403,503"` // of a refusal because robots.txt is unreachable; 0: 403
	Readings          Readings         `yaml:"readings" enum:"strict,literal"`    // how paths are judged that servers read in several ways
}

// DefaultRobots returns the settings that suit most crawlers.
func DefaultRobots() Robots {
	return Robots{Settings: snapshot.DefaultSettings(), UnreachableStatus: http.StatusForbidden, Readings: Strict}
}

// Usage says what is done about usage preferences. The zero value reports what is stated, and refuses nothing.
type Usage struct {
	Reserved Reserved `yaml:"reserved" enum:"annotate,refuse"`
	TDMRep   bool     `yaml:"tdmrep"` // fetch /.well-known/tdmrep.json from origins too
	Unread   Unread   `yaml:"unread" enum:"pass,refuse"`
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
