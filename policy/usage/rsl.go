package usage

import (
	"strings"

	"robotsgate/policy/robotstxt"
)

// readRSL reads links to licences in the form of Really Simple Licensing 1.0. The licences themselves are
// neither fetched nor read.
func readRSL(c *collector) {
	c.robotsLicenses()
	for _, line := range c.in.Header["Link"] { // RSL 4.5
		if len(line) > maxValue {
			continue
		}
		for l := range links(line) {
			if !l.anchored && isRSL(l.rel, l.mediaType) {
				c.license(License{URL: l.target, Source: RSL, In: InHeader})
			}
		}
	}
	for _, l := range c.in.Links { // RSL 4.6
		if isRSL(l.Rel, l.Type) {
			c.license(License{URL: l.Href, Source: RSL, In: InMeta})
		}
	}
}

// robotsLicenses reads the License lines of the group obeyed. If none of them can be read, those
// before the first User-agent line count, which are for everyone (RSL 4.4.2, with the erratum of
// January 2026).
func (c *collector) robotsLicenses() {
	found := false
	read := func(r robotstxt.Field) {
		if c.license(License{URL: r.Value, Source: RSL, In: InRobots, Line: r.Line}) {
			found = true
		}
	}
	for r := range c.in.Group.Fields("License") {
		read(r)
	}
	if found || c.in.Robots == nil {
		return
	}
	for r := range c.in.Robots.Fields("License") {
		if !r.InGroup {
			read(r)
		}
	}
}

// isRSL reports whether a link with these relations and this media type, parameters and all, is to
// an RSL licence. Without that type, as with Creative Commons, it is not RSL.
func isRSL(relations, mediaType string) bool {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	if !equalFold(strings.Trim(mediaType, htmlSpace), "application/rsl+xml") {
		return false
	}
	isSpace := func(r rune) bool { return strings.ContainsRune(htmlSpace, r) }
	for relation := range strings.FieldsFuncSeq(relations, isSpace) {
		if equalFold(relation, "license") {
			return true
		}
	}
	return false
}
