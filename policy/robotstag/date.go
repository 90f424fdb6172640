package robotstag

import (
	"strings"
	"time"
)

const rfc3339 = "2006-01-02T15:04:05Z"

// readDate reads the date at the beginning of s: RFC 822, 850 or 2822, ISO
// 8601, the asctime form, the Date of a structured field, and what people write in
// between. It returns how many bytes belong to the date or, if there is
// none, how far it got in looking for one.
//
// The formats are read by one grammar instead of a list of layouts, since the
// date's end isn't marked: "Friday, 25-Jun-10 15:00:00 GMT, noindex".
func readDate(s string) (t time.Time, n int, ok bool) {
	r := dateReader{s: s}
	r.blank()
	if r.accept('@') {
		t, ok = r.unix()
		return t, r.i, ok && r.atEnd()
	}
	if !r.calendar() {
		return time.Time{}, r.i, false
	}
	if !r.hasTime && !r.clock() {
		return time.Time{}, r.i, false
	}
	if !r.hasZone && !r.zone() || !r.atEnd() {
		return time.Time{}, r.i, false
	}
	t, ok = r.time()
	return t, r.i, ok
}

// dateGoesOn reports whether a comma before s may belong to a date: one that
// stands between the day of the week and the rest, or before the year.
func dateGoesOn(s string) bool {
	r := dateReader{s: s}
	r.blank()
	_, digits := r.number()
	if digits == 0 {
		return r.monthName() && r.atEnd()
	}
	r.ordinal()
	switch r.peek() {
	case '-', '/', '.', ':':
		r.i++
		return isDigit(r.peek()) || r.letters() != "" || r.atEnd()
	case 'T', 't':
		r.i++
		return isDigit(r.peek())
	}
	return r.atEnd()
}

type dateReader struct {
	s string
	i int

	year, month, day  int
	hour, minute, sec int
	offset            int // of the zone, in seconds east of UTC

	hasTime, hasZone bool // read already, as asctime puts them before the year
}

// calendar reads the day, month and year.
func (r *dateReader) calendar() bool {
	if w := r.letters(); weekday(w) {
		r.i += len(w)
		r.accept('.')
		r.blank()
		r.accept(',')
		r.blank()
	}
	v, digits := r.number()
	switch {
	case digits == 0:
		return r.monthFirst()
	case digits == 8: // 20100625
		r.year, r.month, r.day = v/10000, v/100%100, v%100
		return true
	case digits == 4:
		return r.yearFirst(v)
	case digits > 2:
		return false
	}
	r.day = v
	r.ordinal()
	r.separator()
	if !r.monthName() {
		return false
	}
	r.separator()
	return r.readYear()
}

// yearFirst reads the rest of 2010-06-25, 2010/06/25 or 2010-06.
func (r *dateReader) yearFirst(year int) bool {
	sep := r.peek()
	if sep != '-' && sep != '/' {
		return false
	}
	r.i++
	month, digits := r.number()
	if digits == 0 || digits > 2 {
		return false
	}
	r.year, r.month, r.day = year, month, 1
	if r.peek() != sep {
		return true
	}
	r.i++
	day, digits := r.number()
	r.day = day
	return digits == 1 || digits == 2
}

// monthFirst reads June 25, 2010 or asctime's Jun 25 15:00:00 2010.
func (r *dateReader) monthFirst() bool {
	if !r.monthName() {
		return false
	}
	r.separator()
	day, digits := r.number()
	if digits == 0 || digits > 2 {
		return false
	}
	r.day = day
	r.ordinal()
	r.separator()
	if r.timeAhead() {
		if !r.clockDigits() {
			return false
		}
		r.hasTime = true
		r.blank()
		if r.letters() != "" {
			r.hasZone = true
			if !r.zone() {
				return false
			}
			r.blank()
		}
	}
	return r.readYear()
}

// readYear reads a year; of two digits as in RFC 2822, section 4.3.
func (r *dateReader) readYear() bool {
	v, digits := r.number()
	switch digits {
	case 4:
	case 3:
		v += 1900
	case 2:
		v += 1900
		if v < 1950 {
			v += 100
		}
	default:
		return false
	}
	r.year = v
	return true
}

// unix reads the seconds of a structured field's Date (RFC 9651, section 3.3.7).
func (r *dateReader) unix() (time.Time, bool) {
	negative := r.accept('-')
	start := r.i
	var v int64
	for r.i < len(r.s) && isDigit(r.s[r.i]) {
		v = min(v*10+int64(r.s[r.i]-'0'), maxNumber)
		r.i++
	}
	if negative {
		v = -v
	}
	t := time.Unix(v, 0).UTC()
	return t, r.i > start && inRange(t)
}

// time checks and returns what was read.
func (r *dateReader) time() (time.Time, bool) {
	if r.month < 1 || r.month > 12 || r.day < 1 || r.minute > 59 || r.sec > 60 {
		return time.Time{}, false
	}
	// 24:00 is the end of a day in ISO 8601.
	if r.hour > 24 || r.hour == 24 && (r.minute > 0 || r.sec > 0) {
		return time.Time{}, false
	}
	midnight := time.Date(r.year, time.Month(r.month), r.day, 0, 0, 0, 0, time.UTC)
	if midnight.Day() != r.day {
		return time.Time{}, false // 31 June
	}
	seconds := r.hour*3600 + r.minute*60 + min(r.sec, 59) - r.offset
	t := midnight.Add(time.Duration(seconds) * time.Second)
	return t, inRange(t)
}

// inRange reports whether RFC 3339 can write the date.
func inRange(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

// atEnd reports whether the date ends here and not in the middle of a word.
func (r *dateReader) atEnd() bool {
	if r.i == len(r.s) {
		return true
	}
	c := r.s[r.i]
	return isSpace(c) || c == ',' || c == ';' || c == '"' || c == '\''
}

func (r *dateReader) peek() byte {
	if r.i < len(r.s) {
		return r.s[r.i]
	}
	return 0
}

func (r *dateReader) accept(c byte) bool {
	if r.peek() != c || r.i == len(r.s) {
		return false
	}
	r.i++
	return true
}

func (r *dateReader) blank() { r.i = skipBlank(r.s, r.i) }

// separator skips what may stand between day, month and year.
func (r *dateReader) separator() {
	for r.i < len(r.s) && strings.IndexByte(" \t-./,", r.s[r.i]) >= 0 {
		r.i++
	}
}

// ordinal skips the ending of 25th.
func (r *dateReader) ordinal() {
	switch strings.ToLower(r.letters()) {
	case "st", "nd", "rd", "th":
		r.i += 2
	}
}

// number reads digits. More than nine are none of a date's.
func (r *dateReader) number() (v, digits int) {
	start := r.i
	for r.i < len(r.s) && isDigit(r.s[r.i]) {
		if r.i-start < 9 {
			v = v*10 + int(r.s[r.i]-'0')
		}
		r.i++
	}
	return v, r.i - start
}

// letters returns the ASCII letters ahead without reading them.
func (r *dateReader) letters() string {
	i := r.i
	for i < len(r.s) && (r.s[i]|0x20) >= 'a' && (r.s[i]|0x20) <= 'z' {
		i++
	}
	return r.s[r.i:i]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
