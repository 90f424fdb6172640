package usage

import (
	"slices"
	"strings"

	"robotsgate/htmlmeta"
)

// A Head is what of a page's head [Read] reads beside the robots tags, so that it can be remembered: an
// answer without a page, such as a 304, does not lift it. It is immutable.
type Head struct {
	Metas []htmlmeta.Meta
	Links []htmlmeta.Link
}

// HeadOf returns the Head of a page with these metas and links, the first 16 of each without duplicates,
// of those whose URL can be read.
// It shares no memory with them. A page that states nothing costs no allocation.
func HeadOf(metas []htmlmeta.Meta, links []htmlmeta.Link) (h Head) {
	for _, m := range metas {
		m.Content = strings.Trim(m.Content, htmlSpace)
		switch {
		case equalFold(m.Name, tdmReservation) && reservationOf(m.Content) != unknown:
			m.Name = tdmReservation // two at most
		case equalFold(m.Name, tdmPolicy) && readableURL(m.Content) && len(h.Metas) < maxLicenses:
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
		if len(h.Links) == maxLicenses || !readableURL(l.Href) || !isRSL(l.Rel, l.Type) {
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
