package robotstag

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const rfc3339 = "2006-01-02T15:04:05Z"

// readDate reads the date at the beginning of s: RFC 822, 850 or 2822, ISO 8601, or the Date of a structured field. It
// returns how many bytes belong to the date or, if ok is false, to a text in the form of one.
//
// The forms are regular expressions instead of layouts of package time, since the
// date's end isn't marked: "Friday, 25-Jun-10 15:00:00 GMT, noindex".
func readDate(s string) (t time.Time, n int, ok bool) {
	d := dateReader{rest: s}
	if m := d.take(unixDate); m != nil {
		seconds, err := strconv.ParseInt(m[1], 10, 64)
		t, ok = time.Unix(seconds, 0).UTC(), err == nil
	} else if t, ok = d.calendar(); ok {
		sinceMidnight, timeOK := d.clock()
		east, zoneOK := d.zone()
		t, ok = t.Add(sinceMidnight-east), timeOK && zoneOK
	}
	// RFC 3339 can't write other years.
	return t, len(s) - len(d.rest), ok && t.Year() >= 0 && t.Year() <= 9999 && d.look(ends) != nil
}

// continuesDate reports whether a comma before s may belong to a date: that after the day of the week, or one in a text
// that is meant as a date.
func continuesDate(s string) bool { return (&dateReader{s}).look(dateContinued) != nil }

// The parts of a date.
const (
	end       = `(?:$|[\x00-\x20()\\\x7f,;"'])`
	blank     = `[ \t]*`
	weekday   = blank + `(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?[ \t]*,?[ \t]*)?`
	separator = `[ \t\-]*` // between day, month and year
	day       = `(\d{1,2})`
	letters   = `([a-z]+)`
	year      = `(\d{2,4})`
	fraction  = `(?:[.,]\d+)?` // it is cut off: the earlier second is the stricter
)

var (
	// calendars are the forms of a day, with the places of year, month and day among their groups.
	calendars = []struct {
		form             *regexp.Regexp
		year, month, day int
	}{
		{form(blank, `(\d{4})(\d\d)(\d\d)`), 1, 2, 3},                      // 20100625
		{form(blank, `(\d{4})-(\d\d)(?:-(\d\d))?`), 1, 2, 3},               // 2010-06-25, 2010-06
		{form(weekday, day, separator, letters, separator, year), 3, 2, 1}, // 25 Jun 2010
	}
	unixDate      = form(blank, `@(-?\d+)`)
	clock         = form(`(?:t(\d{1,2}):?(\d{0,2}):?(\d{0,2})|[ \t]+(\d{1,2}):(\d{1,2})(?::(\d{1,2}))?)`, fraction)
	zoneName      = form(blank, letters)
	zoneOffset    = form(blank, `([+\-])(\d{1,2}):?(\d*)`)
	zoneComment   = form(blank, `[(\[]([^)\]]{0,62})[)\]]`)
	ends          = form(end)
	dateContinued = form(blank, `\d+(?:[\-/.:]|t\d|`, end, `)`)
)

func form(parts ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)^` + strings.Join(parts, ""))
}

// longestPart bounds how much of a line each part is looked for in, so that a field with
// many dates is read in linear time.
const longestPart = 100

// A dateReader reads a date part by part.
type dateReader struct{ rest string }

// look returns the groups of a part as by FindStringSubmatch; nil if the rest does not
// begin with the part.
func (d *dateReader) look(part *regexp.Regexp) []string {
	return part.FindStringSubmatch(d.rest[:min(len(d.rest), longestPart)])
}

// take is look, and reads the part.
func (d *dateReader) take(part *regexp.Regexp) []string {
	m := d.look(part)
	if m != nil {
		d.rest = d.rest[len(m[0]):]
	}
	return m
}

// calendar reads the day, and returns its midnight.
func (d *dateReader) calendar() (midnight time.Time, ok bool) {
	for _, c := range calendars {
		m := d.take(c.form)
		if m == nil {
			continue
		}
		y, mon, day := atoi(m[c.year]), time.Month(atoi(m[c.month])), atoi(cmp.Or(m[c.day], "1"))
		if mon == 0 {
			mon = month(m[c.month])
		}
		if len(m[c.year]) < 4 { // RFC 2822, section 4.3
			if y += 1900; y < 1950 {
				y += 100
			}
		}
		midnight = time.Date(y, mon, day, 0, 0, 0, 0, time.UTC)
		return midnight, midnight.Month() == mon && midnight.Day() == day // not 31 June
	}
	return midnight, false
}

// clock reads the time of day, if there is one: 15:00, 15:00:00.5 or, after a T, 150000.
func (d *dateReader) clock() (sinceMidnight time.Duration, ok bool) {
	m := d.take(clock)
	if m == nil {
		return 0, true
	}
	hour, minute, second := atoi(m[1]+m[4]), atoi(m[2]+m[5]), atoi(m[3]+m[6])
	seconds := hour*3600 + minute*60 + min(second, 59)
	// 24:00 is the end of a day in ISO 8601, and 23:59:60 may be a leap second.
	return time.Duration(seconds) * time.Second, minute <= 59 && second <= 60 && seconds <= 24*3600
}

// month returns the month by its name, or the first three or more letters of it; 0 if it is none.
func month(name string) time.Month {
	for m := time.January; m <= time.December; m++ {
		if len(name) >= 3 && strings.HasPrefix(strings.ToLower(m.String()), strings.ToLower(name)) {
			return m
		}
	}
	return 0
}

// atoi reads a few digits; none are 0.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
