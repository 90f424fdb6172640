package usage

import (
	"slices"
	"strings"

	"robotsgate/htmlmeta"
)

// A Head has the elements of a page's head that [Read] reads, without the robots tags. It is remembered,
// since it applies to answers without a page too, such as a 304. It is immutable.
type Head struct {
	Metas []htmlmeta.Meta
	Links []htmlmeta.Link
}

// HeadOf returns the Head of a page with these metas and links. It leaves out duplicates, elements with a
// URL that is not readable (see [ReadableLicense]), and all after the first 16 of each kind. It shares no
// memory with its arguments, and allocates nothing for a page that states nothing.
func HeadOf(metas []htmlmeta.Meta, links []htmlmeta.Link) (h Head) {
	for _, m := range metas {
		m.Content = strings.Trim(m.Content, htmlSpace)
		switch {
		case equalFold(m.Name, tdmReservation) && reservationOf(m.Content) != unknown:
			m.Name = tdmReservation // two at most
		case equalFold(m.Name, tdmPolicy) && ReadableLicense(m.Content) && len(h.Metas) < maxLicenses:
			m.Name = tdmPolicy
		default:
			continue
		}
		if !slices.Contains(h.Metas, m) {
			m.Content = strings.Clone(m.Content)
			h.Metas = append(h.Metas, m)
		}
	}
	for _, l := range links {
		if len(h.Links) == maxLicenses || !ReadableLicense(l.Href) || !isRSL(l.Rel, l.Type) {
			continue
		}
		l = htmlmeta.Link{Rel: "license", Type: "application/rsl+xml", Href: strings.Clone(l.Href)}
		if !slices.Contains(h.Links, l) {
			h.Links = append(h.Links, l)
		}
	}
	return h
}

// Cost estimates the memory that h holds, in bytes.
func (h Head) Cost() (bytes int) {
	for _, m := range h.Metas {
		bytes += 48 + len(m.Content)
	}
	for _, l := range h.Links {
		bytes += 64 + len(l.Href)
	}
	return bytes
}
