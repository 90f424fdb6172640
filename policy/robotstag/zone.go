package robotstag

import (
	"strings"
	"time"
)

// zones holds the offsets of zone names in quarters of an hour east of UTC.
// The American names have their meaning in RFC 822, section 5.1. If a name has several usual
// meanings, the easternmost counts, so that the date is not later than its author meant.
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

// zone reads the zone, if there is one, and returns how far east of UTC it is. Without one
// the date is UTC.
func (d *dateReader) zone() (east time.Duration, ok bool) {
	if m := d.look(zoneName); m != nil {
		rest := d.rest[len(m[0]):]
		quarters, known := zones[strings.ToLower(m[1])]
		// An unknown zone says nothing about the offset (RFC 2822, section 4.3). Leave
		// words that are more likely a rule or a scope.
		if !known && !zoneLike(m[1], rest) {
			return 0, true
		}
		d.rest, east = rest, time.Duration(quarters)*15*time.Minute
	}
	if east == 0 { // an offset, or GMT+1
		if m := d.take(zoneOffset); m != nil {
			hours, minutes := atoi(m[2]), atoi(m[3])
			if hours > 23 || minutes > 59 || len(m[3]) == 1 {
				return 0, false
			}
			east = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
			if m[1] == "-" {
				east = -east
			}
		}
	}
	// Neither the comment of RFC 2822, +0100 (CET), nor that of RFC 9557,
	// +01:00[Europe/Paris], changes the offset. With a rule it is an inner list.
	if m := d.look(zoneComment); m != nil && !holdsRule(m[1]) {
		d.take(zoneComment)
	}
	return east, true
}

// zoneLike reports whether a word may be a zone's name. The rest follows it.
func zoneLike(word, rest string) bool {
	if len(word) > 5 || lookup(word).kind != notAWord || strings.ToUpper(word) != word {
		return false
	}
	if rest != "" && !isSpace(rest[0]) && rest[0] != ',' && rest[0] != ';' {
		return false
	}
	rest = strings.TrimLeft(rest, " \t")
	return rest == "" || rest[0] != ':' && rest[0] != '='
}
