package robotstag

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const rfc3339 = "2006-01-02T15:04:05Z"

// readDate reads the date at the beginning of s: RFC 822, 850 or 2822, ISO 8601, the
// asctime form, the Date of a structured field, and forms in between that sites use. It
// returns how many bytes belong to the date or, if there is none, how far it got in
// looking for one.
//
// The formats are read by one grammar instead of a list of layouts, since the
// date's end isn't marked: "Friday, 25-Jun-10 15:00:00 GMT, noindex".
func readDate(s string) (t time.Time, n int, ok bool) {
	d := dateReader{rest: s}
	d.take(blank)
	if m := d.take(unixDate); m != nil {
		t, ok = unix(m[1])
	} else if d.calendar() && d.clock() && d.zone() {
		t, ok = d.time()
	}
	return t, len(s) - len(d.rest), ok && d.look(ends) != nil
}

// continuesDate reports whether a comma before s may belong to a date: a comma after the day
// of the week or before the year.
func continuesDate(s string) bool {
	m := dateContinued.FindStringSubmatch(s[:min(len(s), longestPart)])
	return m != nil && (m[1] == "" || month(m[1]) > 0)
}

// The parts of a date. A group is checked by the code if its length matters.
const (
	anyCase   = `(?i)^`
	end       = `(?:$|[\x00-\x20()\\\x7f,;"'])`
	separator = `[ \t\-./,]*` // between day, month and year
	ordinal   = `(?:st|nd|rd|th)?`
	seconds   = `(?::(\d*))?(?:[.,]\d+)?` // a fraction is cut off: the earlier second is the stricter
	halfDay   = `(?:[ \t]*([ap])m\b)?`
)

var (
	blank         = regexp.MustCompile(`^[ \t]*`)
	digits        = regexp.MustCompile(`^\d+`)
	letters       = regexp.MustCompile(anyCase + `[a-z]+`)
	ends          = regexp.MustCompile(`^` + end)
	dateContinued = regexp.MustCompile(anyCase + `[ \t]*(?:\d+` + ordinal + `(?:[\-/.:](?:[\da-z]|` + end + `)|t\d|` + end + `)|([a-z]+)` + end + `)`)
	unixDate      = regexp.MustCompile(`^@(-?\d*)`)
	afterWeekday  = regexp.MustCompile(`^\.?[ \t]*,?[ \t]*`)
	afterDay      = regexp.MustCompile(anyCase + ordinal + separator + `([a-z]+)` + separator) // 25th June
	afterYear     = regexp.MustCompile(`^(?:-(\d+)(?:-(\d+))?|/(\d+)(?:/(\d+))?)`)             // 2010-06-25, 2010/06
	afterMonth    = regexp.MustCompile(anyCase + separator + `(\d+)` + ordinal + separator)    // June 25th
	isoClock      = regexp.MustCompile(anyCase + `t(\d+)(?::(\d*))?` + seconds + halfDay)
	aClock        = regexp.MustCompile(anyCase + `[ \t]*,?[ \t]*(?:at[ \t]*)?(\d{1,2}):(\d*)` + seconds + halfDay)
	zoneName      = regexp.MustCompile(anyCase + `[ \t]*([a-z]+)`)
	offset        = regexp.MustCompile(`^[ \t]*([+\-])(\d*)(?::(\d*))?`)
	comment       = regexp.MustCompile(`^[ \t]*(?:\(([^)]{0,62})\)|\[([^\]]{0,62})\])`)
)

// longestPart bounds how much of a line each part is looked for in, so that a field with
// many dates is read in linear time.
const longestPart = 100

// A dateReader reads a date part by part.
type dateReader struct {
	rest string

	year, month, day     int
	hour, minute, second int
	east                 int // offset of the zone, in seconds east of UTC

	hasTime, hasZone bool // read already, as asctime puts them before the year
}

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

// unix reads the seconds of a structured field's Date (RFC 9651, section 3.3.7).
func unix(seconds string) (time.Time, bool) {
	v, err := strconv.ParseInt(seconds, 10, 64)
	t := time.Unix(v, 0).UTC()
	return t, err == nil && inRange(t)
}

// calendar reads the day, month and year.
func (d *dateReader) calendar() bool {
	if m := d.look(letters); m != nil && abbreviated(m[0], weekdays) >= 0 {
		d.take(letters)
		d.take(afterWeekday)
	}
	m := d.take(digits)
	switch {
	case m == nil:
		return d.monthFirst()
	case len(m[0]) == 8: // 20100625
		d.year, d.month, d.day = atoi(m[0][:4]), atoi(m[0][4:6]), atoi(m[0][6:])
		return true
	case len(m[0]) == 4:
		return d.yearFirst(m[0])
	case len(m[0]) > 2:
		return false
	}
	d.day = atoi(m[0])
	if m = d.take(afterDay); m == nil {
		return false
	}
	d.month = month(m[1])
	return d.readYear()
}

// yearFirst reads the rest of 2010-06-25, 2010/06/25 or 2010-06.
func (d *dateReader) yearFirst(year string) bool {
	m := d.take(afterYear)
	if m == nil || len(m[1]+m[3]) > 2 || len(m[2]+m[4]) > 2 {
		return false
	}
	d.year, d.month, d.day = atoi(year), atoi(m[1]+m[3]), 1
	if day := m[2] + m[4]; day != "" {
		d.day = atoi(day)
	}
	return true
}

// monthFirst reads June 25, 2010 or asctime's Jun 25 15:00:00 2010.
func (d *dateReader) monthFirst() bool {
	m := d.look(letters)
	if m == nil || month(m[0]) == 0 {
		return false
	}
	d.month = month(m[0])
	d.take(letters)
	m = d.take(afterMonth)
	if m == nil || len(m[1]) > 2 {
		return false
	}
	d.day = atoi(m[1])
	if d.look(aClock) != nil && isDigit(d.rest[0]) {
		if !d.clock() {
			return false
		}
		d.hasTime = true
		d.take(blank)
		if d.look(letters) != nil {
			if !d.zone() {
				return false
			}
			d.hasZone = true
			d.take(blank)
		}
	}
	return d.readYear()
}

// readYear reads a year; of two digits as in RFC 2822, section 4.3.
func (d *dateReader) readYear() bool {
	m := d.take(digits)
	if m == nil {
		return false
	}
	d.year = atoi(m[0])
	switch len(m[0]) {
	case 4:
	case 3:
		d.year += 1900
	case 2:
		if d.year += 1900; d.year < 1950 {
			d.year += 100
		}
	default:
		return false
	}
	return true
}

// clock reads the time of day, if there is one: 15:00, 15:00:00.5, 3:00 PM or, after a T,
// 150000.
func (d *dateReader) clock() bool {
	if d.hasTime {
		return true
	}
	m := d.take(isoClock)
	if m == nil {
		if m = d.take(aClock); m == nil {
			return true
		}
	}
	hour, minute, second := m[1], m[2], m[3]
	colons := strings.Count(m[0], ":")
	if n := len(hour); colons == 0 && (n == 4 || n == 6) {
		hour, minute, second = hour[:2], hour[2:4], hour[4:]
	} else if n > 2 || colons > 0 && len(minute) != 2 || colons > 1 && len(second) != 2 {
		return false
	}
	d.hour, d.minute, d.second = atoi(hour), atoi(minute), atoi(second)
	if m[4] == "" {
		return true
	}
	if d.hour < 1 || d.hour > 12 {
		return false
	}
	d.hour %= 12
	if strings.EqualFold(m[4], "p") {
		d.hour += 12
	}
	return true
}

// time checks and returns what was read.
func (d *dateReader) time() (time.Time, bool) {
	if d.month < 1 || d.month > 12 || d.day < 1 || d.minute > 59 || d.second > 60 {
		return time.Time{}, false
	}
	// 24:00 is the end of a day in ISO 8601.
	if d.hour > 24 || d.hour == 24 && (d.minute > 0 || d.second > 0) {
		return time.Time{}, false
	}
	midnight := time.Date(d.year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC)
	if midnight.Day() != d.day {
		return time.Time{}, false // 31 June
	}
	seconds := d.hour*3600 + d.minute*60 + min(d.second, 59) - d.east
	t := midnight.Add(time.Duration(seconds) * time.Second)
	return t, inRange(t)
}

// inRange reports whether RFC 3339 can write the date.
func inRange(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

var (
	weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
	months   = []string{"january", "february", "march", "april", "may", "june", "july", "august",
		"september", "october", "november", "december"}
)

// month returns the number of a month by its name; 0 if it is none.
func month(name string) int { return abbreviated(name, months) + 1 }

// abbreviated returns which of names w is, or at least the first three letters of; -1 if
// none.
func abbreviated(w string, names []string) int {
	return slices.IndexFunc(names, func(name string) bool {
		return len(w) >= 3 && strings.HasPrefix(name, strings.ToLower(w))
	})
}

// atoi reads a few digits.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
