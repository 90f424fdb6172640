package robotstag

import "strings"

var (
	weekdays = [...]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
	months   = [...]string{"january", "february", "march", "april", "may", "june", "july", "august",
		"september", "october", "november", "december"}
)

// weekday reports whether w is the name of a day or its first letters.
func weekday(w string) bool {
	for _, d := range weekdays {
		if abbreviates(w, d) {
			return true
		}
	}
	return false
}

func abbreviates(w, name string) bool {
	return len(w) >= 3 && len(w) <= len(name) && equalFold(w, name[:len(w)])
}

func (r *dateReader) monthName() bool {
	w := r.letters()
	for i, m := range months {
		if abbreviates(w, m) {
			r.i += len(w)
			r.month = i + 1
			return true
		}
	}
	return false
}

// zones holds the offsets of zone names in quarters of an hour east of UTC.
// The American ones are those of RFC 822, section 5.1, and mean what they say
// there. Where a name has several meanings the easternmost of the usual ones
// counts, so that the date is not later than its author meant.
var zones = map[string]int{
	"z": 0, "ut": 0, "utc": 0, "gmt": 0, "wet": 0,
	"est": -20, "edt": -16, "cst": -24, "cdt": -20, "mst": -28, "mdt": -24, "pst": -32, "pdt": -28,
	"akst": -36, "akdt": -32, "hst": -40, "hast": -40, "hadt": -36, "ast": -16, "adt": -12,
	"nst": -14, "ndt": -10, "brt": -12, "brst": -8, "art": -12, "clt": -16, "clst": -12, "cot": -20, "pet": -20,
	"west": 4, "bst": 4, "cet": 4, "cest": 8, "met": 4, "mest": 8, "mez": 4, "mesz": 8, "wat": 4,
	"eet": 8, "eest": 12, "cat": 8, "sast": 8, "idt": 12, "msk": 12, "msd": 16, "trt": 12, "eat": 12,
	"gst": 16, "pkt": 20, "ist": 22, "npt": 23, "ict": 28, "wib": 28, "sgt": 32, "myt": 32, "hkt": 32, "pht": 32,
	"awst": 32, "jst": 36, "kst": 36, "acst": 38, "acdt": 42, "aest": 40, "aedt": 44, "nzst": 48, "nzdt": 52,
}

// zone reads the zone, if there is one; without one the date is UTC.
func (r *dateReader) zone() bool {
	start := r.i
	r.blank()
	w := r.letters()
	quarters, known := zones[strings.ToLower(w)]
	switch {
	case known:
		r.i += len(w)
		r.offset = quarters * 900
		if c := r.peek(); quarters == 0 && len(w) > 1 && (c == '+' || c == '-') {
			return r.numericZone() // GMT+1
		}
	case w != "":
		// An unknown zone says nothing about the offset (RFC 2822, section
		// 4.3). Leave words that are more likely a rule or a scope.
		if !zoneLike(r.s[r.i:], w) {
			r.i = start
			return true
		}
		r.i += len(w)
	case r.peek() == '+' || r.peek() == '-':
		if !r.numericZone() {
			return false
		}
	default:
		r.i = start
	}
	r.comment()
	return true
}

// zoneLike reports whether w, at the beginning of s, may be a zone's name.
func zoneLike(s, w string) bool {
	if len(w) > 5 || lookup(w).kind != notAWord || strings.ToUpper(w) != w {
		return false
	}
	rest := s[len(w):]
	if rest != "" && !isSpace(rest[0]) && rest[0] != ',' && rest[0] != ';' {
		return false
	}
	rest = rest[skipBlank(rest, 0):]
	return rest == "" || rest[0] != ':' && rest[0] != '='
}

// numericZone reads +1, +01, +0100 or +01:00.
func (r *dateReader) numericZone() bool {
	negative := r.peek() == '-'
	r.i++
	v, digits := r.number()
	hours, minutes := v, 0
	switch digits {
	case 1, 2:
		if r.accept(':') {
			if minutes, digits = r.number(); digits != 2 {
				return false
			}
		}
	case 4:
		hours, minutes = v/100, v%100
	default:
		return false
	}
	if hours > 23 || minutes > 59 {
		return false
	}
	r.offset = hours*3600 + minutes*60
	if negative {
		r.offset = -r.offset
	}
	return true
}

// comment skips the comment of RFC 2822, +0100 (CET), and what RFC 9557 adds to
// ISO 8601, +01:00[Europe/Paris]: neither changes the offset. What holds a rule
// is no comment but an inner list.
func (r *dateReader) comment() {
	i := skipBlank(r.s, r.i)
	if i == len(r.s) {
		return
	}
	end := byte(')')
	switch r.s[i] {
	case '(':
	case '[':
		end = ']'
	default:
		return
	}
	const longest = 64
	n := strings.IndexByte(r.s[i:min(len(r.s), i+longest)], end)
	if n > 0 && !holdsRule(r.s[i+1:i+n]) {
		r.i = i + n + 1
	}
}
