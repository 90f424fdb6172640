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

// pathReadings are a path and its other readings. These are made when they are first
// needed: a long path takes a millisecond or two.
type pathReadings struct {
	path     string
	readings Readings
	made     bool
	other    []robotstxt.Reading // if made
}

// others returns the readings of the path beside the literal one.
func (p *pathReadings) others() []robotstxt.Reading {
	if !p.made && p.readings != Literal {
		p.other = robotstxt.Readings(p.path)
	}
	p.made = true
	return p.other
}

// judgeReadings turns d, which allows path, into a denial if another reading of path
// is denied. An Allow rule that is written for this very spelling stands, whatever the other paths are.
func (d *Decision) judgeReadings(path string, readings Readings, effort *robotstxt.Effort) {
	if readings == Literal || !d.Allow || !d.Group.HasDisallow() {
		return
	}
	others, ok := effort.Readings(path)
	if !ok {
		d.Allow, d.Reason, d.Rule = false, TooComplex, robotstxt.Rule{}
		return
	}
	spelled := len(others) > 0 && d.Reason == ByRule && d.Rule.SpellsLike(path)
	for _, reading := range others {
		if spelled && !reading.OnlyQuery {
			continue
		}
		other := *d
		if other.judgePath(reading, effort); !other.Allow {
			other.ReadAs = reading.Path
			*d = other
			return
		}
	}
}

// OtherReading returns a reading of t's path that the rules behind d deny, although they
// allow the literal path; "" if there is none.
func (d Decision) OtherReading(t canonical.Target) string {
	effort := robotstxt.Thorough()
	d.judgeReadings(t.Path, Strict, &effort)
	return d.ReadAs
}
