package htmlmeta

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
)

// link keeps a link to a licence, as meta keeps a meta.
func (h *head) link() {
	h.readValues("rel", "type", "href")
	if h.err == nil && mayBeLicense(h.values[0]) {
		h.keptLinks = h.appendTag(h.keptLinks, "link", "rel", "type", "href")
	}
}

// license is the relation of a link to a licence (WHATWG HTML, section 4.6.7.9).
const license = "license"

// mayBeLicense reports whether a rel as written may have the token: character references may hide it.
func mayBeLicense(rel []byte) bool {
	for i := range len(rel) - len(license) + 1 {
		if rel[i]|0x20 == license[0] && bytes.EqualFold(rel[i:i+len(license)], []byte(license)) {
			return true
		}
	}
	return bytes.IndexByte(rel, '&') >= 0
}

// links returns the links to licences in the head that was kept.
func (h *head) links(p *page) (links []Link) {
	if len(h.keptLinks) == 0 {
		return nil
	}
	// As a reduced page, this is flat: see treeMetas.
	page, err := goquery.NewDocumentFromReader(bytes.NewReader(p.text(h.keptLinks)))
	if err != nil {
		return nil
	}
	for _, link := range page.Find("head > link").EachIter() {
		if l, ok := toLicense(link.AttrOr("rel", ""), link.AttrOr("type", ""), link.AttrOr("href", "")); ok {
			links = append(links, l)
		}
	}
	return links
}

// toLicense returns the link with these attributes, if it is to a licence.
func toLicense(rel, mediaType, href string) (l Link, ok bool) {
	href = strings.TrimFunc(href, isSpaceRune)
	for token := range strings.FieldsFuncSeq(rel, isSpaceRune) {
		// The length is that of ASCII: EqualFold takes a long s for an s.
		ok = ok || len(token) == len(license) && strings.EqualFold(token, license)
	}
	return Link{rel, mediaType, href}, ok && href != ""
}

func isSpaceRune(r rune) bool { return r < utf8.RuneSelf && isSpace(byte(r)) }
