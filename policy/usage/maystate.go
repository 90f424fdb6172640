package usage

import (
	"slices"
	"strings"
)

// MayState reports whether any signal may state anything. It looks only at names, and allocates nothing:
// most URLs have no signal.
func (in *Input) MayState() bool {
	if in.TDMRep != nil && len(in.TDMRep.entries) > 0 {
		return true
	}
	if in.Robots != nil && in.Robots.HasField("License") || in.Group.HasField("License") {
		return true
	}
	if !in.Denied && (in.Group.HasField("Content-Usage") || in.Group.HasField("Content-Signal")) {
		return true
	}
	if len(in.Header) > 0 && in.fieldsMayState() {
		return true
	}
	for i := range in.Tags {
		if reservesTraining(in.Tags[i].Name) {
			return true
		}
	}
	for i := range in.Metas {
		if equalFold(in.Metas[i].Name, tdmReservation) {
			return true
		}
	}
	return len(in.Links) > 0
}

// fieldsMayState reports whether there is a field that may state something. Tdm-Policy does not
// without a reservation.
func (in *Input) fieldsMayState() bool {
	if len(in.Header["Content-Usage"]) > 0 || len(in.Header["Content-Signal"]) > 0 || len(in.Header["Tdm-Reservation"]) > 0 {
		return true
	}
	return slices.ContainsFunc(in.Header["Link"], mayLinkToRSL)
}

// mayLinkToRSL reports whether a line of a Link field may have the media type of RSL. Most lines link to
// style sheets and the like.
func mayLinkToRSL(line string) bool {
	const suffix = "rsl+xml"
	for rest := line; ; {
		i := strings.IndexByte(rest, '+')
		if i < 0 {
			return strings.IndexByte(line, '\\') >= 0 // which hides a character of a quoted string
		}
		plus := len(line) - len(rest) + i
		if from := plus - len("rsl"); from >= 0 && from+len(suffix) <= len(line) && equalFold(line[from:from+len(suffix)], suffix) {
			return true
		}
		rest = rest[i+1:]
	}
}
