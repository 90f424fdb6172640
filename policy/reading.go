package policy

import (
	"errors"

	"robotsgate/policy/robotstxt"
)

// Readings says how paths are judged that common servers read in several ways, see
// [robotstxt.Readings].
type Readings string

const (
	// Strict denies if any reading of the path denies. It is the zero value's meaning.
	Strict Readings = "strict"
	// Literal judges the path as RFC 9309, 2.2.2 compares it, and no other way.
	Literal Readings = "literal"
)

// ErrHiddenDots says that the path has a dot segment next to an encoded separator, as
// in /public/..%2Fprivate, which servers resolve differently.
var ErrHiddenDots = errors.New("the path has a dot segment next to an encoded slash or backslash, which some servers resolve; send the path without it")

// others returns the readings of path beside the literal one.
func (r Readings) others(path string) []string {
	if r == Literal {
		return nil
	}
	return robotstxt.Readings(path)
}

// check reports paths that must not be sent, whatever robots.txt says.
func (r Readings) check(t Target) error {
	if r != Literal && robotstxt.HidesDotSegment(t.Path) {
		return ErrHiddenDots
	}
	return nil
}

// judgeReadings turns d, which allows path, into a denial if another reading of path
// is denied. An Allow rule that is written for this very spelling stands.
func (d *Decision) judgeReadings(path string, readings Readings, effort *robotstxt.Effort) {
	if !d.Allow || d.Reason == ByRule && d.Rule.SpeaksFor(path) {
		return
	}
	for _, reading := range readings.others(path) {
		other := *d
		if other.judgePath(reading, effort); !other.Allow {
			other.ReadAs = reading
			*d = other
			return
		}
	}
}

// OtherReading returns the path that servers may take t's path for and that the rules
// behind d deny, although they allow the path as it stands; "" if there is none.
func (d Decision) OtherReading(t Target) string {
	effort := robotstxt.Thorough()
	d.judgeReadings(t.Path, Strict, &effort)
	return d.ReadAs
}
