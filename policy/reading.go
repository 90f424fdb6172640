package policy

import (
	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
)

// Readings says how paths are judged that common servers read in several ways, see
// [robotstxt.Readings].
type Readings string

const (
	// Strict denies if any reading of the path is denied. The zero value means the same.
	Strict Readings = "strict"
	// Literal judges the path only as RFC 9309, 2.2.2 compares it.
	Literal Readings = "literal"
)

// others returns the readings of path beside the literal one.
func (r Readings) others(path string) []string {
	if r == Literal {
		return nil
	}
	return robotstxt.Readings(path)
}

// judgeReadings turns d, which allows path, into a denial if another reading of path
// is denied. An Allow rule that is written for this very spelling stands, whatever the other paths are.
func (d *Decision) judgeReadings(path string, readings Readings, effort *robotstxt.Effort) {
	if !d.Allow || !d.Group.HasDisallow() {
		return
	}
	others := readings.others(path)
	if len(others) > 0 && d.Reason == ByRule && d.Rule.SpellsLike(path) {
		return
	}
	for _, reading := range others {
		other := *d
		if other.judgePath(reading, effort); !other.Allow {
			other.ReadAs = reading
			*d = other
			return
		}
	}
}

// OtherReading returns a reading of t's path that the rules behind d deny, although they
// allow the literal path; "" if there is none.
func (d Decision) OtherReading(t canonical.Target) string {
	effort := robotstxt.NewEffort()
	d.judgeReadings(t.Path, Strict, &effort)
	return d.ReadAs
}
