package htmlmeta

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
)

// maxDepth bounds how deep an XML head may nest; none needs more.
const maxDepth = 256

// scanXHTML returns the metas of a page that is sent as application/xhtml+xml,
// which browsers read as XML. Since many such pages are HTML at heart, and
// crawlers read them so, it is read as HTML too, and both count.
func scanXHTML(p *page, maxPage int) ([]Meta, error) {
	rec := &recorder{r: p}
	metas, whole := xmlMetas(&xmlText{r: rec, p: p})
	page := rec.again()
	if whole {
		// The XML settles where the head ends. As HTML it may seem to go on, as
		// after <title/>, so no more of the page is read for that.
		page = bytes.NewReader(rec.kept.Bytes())
	}
	more, err := scanHTML(page, p, maxPage)
	if whole {
		err = nil
	}
	return union(metas, more), err
}

// xmlMetas reads XML up to the end of its head and reports whether it found
// that. Elements are told by their local names: a prefix that is bound to
// XHTML is as good as none, and one that isn't is still no other's head.
func xmlMetas(r io.Reader) (metas []Meta, whole bool) {
	d := xml.NewDecoder(r)
	d.Strict = false
	d.Entity = xml.HTMLEntity
	// The page is in UTF-8 by now, whatever it says.
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	depth, head := 0, 0 // head is its depth, once it is open
	noscript := false
	for {
		// Raw, so that nothing is kept of the elements that are open.
		token, err := d.RawToken()
		if err != nil {
			return metas, err == io.EOF
		}
		switch t := token.(type) {
		case xml.StartElement:
			name := t.Name.Local
			if head > 0 && name == "body" {
				return metas, false // the head was not closed: no XML
			}
			if !void(name) {
				depth++
			}
			switch {
			case depth > maxDepth:
				return metas, false
			case head == 0 && name == "head" && depth <= 2:
				head = depth
			case head == 0 && depth == 2 && (name == "body" || name == "frameset"):
				return metas, true
			case head == 0:
			case name == "noscript" && depth == head+1:
				noscript = true
			case name == "meta" && (depth == head || noscript && depth == head+1):
				if m, ok := namedXML(t.Attr); ok {
					metas = append(metas, m)
				}
			}
		case xml.EndElement:
			if void(t.Name.Local) {
				continue
			}
			depth--
			if depth <= head {
				noscript = false
			}
			if head > 0 && (depth < head || t.Name.Local == "head") {
				return metas, depth < head && t.Name.Local == "head"
			}
		}
	}
}

// void reports whether an element has no content. Written without its "/" it
// is an error in XML that needn't hide what follows.
func void(name string) bool {
	switch name {
	case "meta", "link", "base":
		return true
	}
	return false
}

func namedXML(attrs []xml.Attr) (m Meta, ok bool) {
	for _, a := range attrs {
		switch {
		case a.Name.Space != "":
		case a.Name.Local == "name":
			m.Name = strings.TrimSpace(a.Value)
		case a.Name.Local == "content":
			m.Content = a.Value
		}
	}
	return m, m.Name != "" && m.Content != ""
}
