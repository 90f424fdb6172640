package htmlmeta

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
)

// maxDepth bounds the depth of elements in a head in XML.
const maxDepth = 256

// scanXHTML returns the metas of a page sent as application/xhtml+xml. Browsers
// read it as XML. Many such pages are HTML in fact, and crawlers read them as
// HTML, so it is read both ways and the metas of both count.
func scanXHTML(h *head, p *page) ([]Meta, error) {
	var read bytes.Buffer
	text := &wire{r: &xmlText{r: io.TeeReader(p, &read), p: p}}
	metas, whole := xmlMetas(text)
	page := io.MultiReader(&read, p)
	if whole {
		// The head ends where it ends in XML. As HTML it may seem to go on, as
		// after <title/>, so no more of the page is read for that.
		page = &read
	}
	more, err := scanHTMLFrom(page, h, p)
	switch {
	case whole:
		err = nil
	case text.err != nil:
		err = text.err // the head may have ended in HTML, and not yet in XML
	}
	return union(metas, more), err
}

// xmlMetas reads XML up to the end of its head, and reports whether it found the
// end.
func xmlMetas(r io.Reader) (metas []Meta, whole bool) {
	d := xml.NewDecoder(r)
	d.Strict = false
	d.Entity = xml.HTMLEntity
	// The page has been converted to UTF-8, whatever encoding it declares.
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var h xmlHead
	for !h.over {
		// RawToken keeps no stack of open elements.
		token, err := d.RawToken()
		if err != nil {
			return h.metas, err == io.EOF
		}
		switch t := token.(type) {
		case xml.Directive:
			h.entities.declare(t)
		case xml.StartElement:
			h.start(t)
		case xml.EndElement:
			h.end(t)
		}
	}
	return h.metas, h.whole
}

// An xmlHead finds the head among the elements of XML, and its metas.
type xmlHead struct {
	metas []Meta
	over  bool // no meta can follow
	whole bool // the head was read to its end

	depth    int // of open elements
	head     int // depth of the head, once it is open
	inner    int // open elements named "head" inside the head
	noscript bool
	prefixes prefixes
	entities entities
}

func (h *xmlHead) start(t xml.StartElement) {
	h.prefixes.leave(h.depth + 1) // of a void element without an end tag
	h.prefixes.bind(t.Attr, h.depth+1)
	name := h.prefixes.htmlName(t.Name)
	if !void(name) {
		h.depth++
	}
	switch {
	case h.depth > maxDepth:
		h.over = true
	case h.head == 0 && h.depth <= 2:
		switch {
		case name == "head":
			h.head = h.depth
		case h.depth == 2 && (name == "body" || name == "frameset"):
			h.over, h.whole = true, true
		}
	case h.head == 0:
	case name == "body":
		h.over = true // the head was not closed, so this is not XML
	case name == "head":
		h.inner++
	case name == "noscript" && h.depth == h.head+1:
		h.noscript = true
	case name == "meta" && (h.depth == h.head || h.noscript && h.depth == h.head+1):
		if m, ok := namedXML(t.Attr, h.entities); ok {
			h.metas = append(h.metas, m)
		}
	}
}

func (h *xmlHead) end(t xml.EndElement) {
	name := h.prefixes.htmlName(t.Name)
	if void(name) {
		h.prefixes.leave(h.depth + 1)
		return
	}
	h.prefixes.leave(h.depth)
	h.depth--
	if h.depth <= h.head {
		h.noscript = false
	}
	switch {
	case h.head == 0:
	case h.depth < h.head:
		h.over, h.whole = true, name == "head"
	case name == "head" && h.inner > 0:
		h.inner--
	case name == "head":
		h.over = true // an element in it was not closed, so this is not XML
	}
}

// void reports whether an element has no content. Without the "/" it is an error
// in XML, which is tolerated so that it does not hide the metas after it.
func void(name string) bool {
	switch name {
	case "meta", "link", "base":
		return true
	}
	return false
}

// namedXML returns the meta with these attributes, if it has a name and content.
// Of two attributes with one name the first counts, as in HTML.
func namedXML(attrs []xml.Attr, e entities) (m Meta, ok bool) {
	m.Name = strings.TrimSpace(e.expand(attribute(attrs, "name")))
	m.Content = e.expand(attribute(attrs, "content"))
	return m, m.Name != "" && m.Content != ""
}

func attribute(attrs []xml.Attr, name string) string {
	for _, a := range attrs {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
