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
		err = text.err // as HTML it may have ended sooner, as XML there may be more
	}
	return union(metas, more), err
}

// xmlMetas reads XML up to the end of its head and reports whether it found
// that.
func xmlMetas(r io.Reader) (metas []Meta, whole bool) {
	d := xml.NewDecoder(r)
	d.Strict = false
	d.Entity = xml.HTMLEntity
	// The page is in UTF-8 by now, whatever it says.
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var h xmlHead
	for !h.over {
		// Raw, so that nothing is kept of the elements that are open.
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
	whole bool // since the head was read to its end, as XML has it

	depth    int // of open elements
	head     int // its depth, once it is open
	inner    int // open elements called "head" inside
	noscript bool
	prefixes prefixes
	entities entities
}

func (h *xmlHead) start(t xml.StartElement) {
	h.prefixes.leave(h.depth + 1) // of a void element without its end
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
		h.over = true // the head was not closed: no XML
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
		h.over = true // not all that it holds was closed: no XML
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

// namedXML returns the meta of these attributes, if it has a name and content.
// Of two that are the same the first counts, as in HTML.
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
