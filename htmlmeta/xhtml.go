package htmlmeta

import (
	"bytes"
	"encoding/xml"
	"io"
	"maps"
	"slices"
)

// maxDepth bounds the depth of elements in a head in XML.
const maxDepth = 256

// scanXHTML returns the metas and links of a page sent as application/xhtml+xml. Browsers
// read it as XML. Many such pages are HTML in fact, and crawlers read them as
// HTML, so it is read both ways and what both find counts.
//
// If it was sent as any XML, its root must be html: otherwise the error is errNoPage.
func scanXHTML(h *head, p *page, anyXML bool) ([]Meta, []Link, error) {
	var read bytes.Buffer
	p.xml = true
	text := &wire{r: io.TeeReader(p, &read)}
	metas, links, root, whole := xmlHead(text, anyXML)
	if anyXML && root != "html" && text.err == nil {
		return nil, nil, errNoPage
	}
	page := io.MultiReader(&read, p)
	if whole {
		// The head ends where it ends in XML. As HTML it may seem to go on, as
		// after <title/>, so no more of the page is read for that.
		page = &read
	}
	moreMetas, moreLinks, err := scanHTML(page, h, p)
	switch {
	case whole:
		err = nil
	case text.err != nil:
		err = text.err // the head may have ended in HTML, and not yet in XML
	}
	return union(metas, moreMetas), union(links, moreLinks), err
}

// xmlHead reads XML up to the end of its head, and reports whether it found the end. A
// page with an element that is not closed is not XML. root is the name of the first element, as in xmlElement. If
// onlyHTML is set it reads no further if that is not html.
func xmlHead(r io.Reader, onlyHTML bool) (metas []Meta, links []Link, root string, whole bool) {
	d := xml.NewDecoder(r)
	d.Strict = false
	d.Entity = xml.HTMLEntity
	// The page has been converted to UTF-8, whatever encoding it declares.
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	declared := entities{}
	open := []xmlElement{{prefixes: map[string]bool{}}} // the document, html, head and so on
	for len(open) <= maxDepth {
		// Token would close elements that are not closed.
		token, err := d.RawToken()
		if err != nil {
			return metas, links, root, false
		}
		innermost := open[len(open)-1]
		switch t := token.(type) {
		case xml.Directive:
			declared.declare(t)
		case xml.StartElement:
			e := innermost.child(t)
			open = append(open, e)
			if len(open) == 2 && root == "" {
				if root = e.name; onlyHTML && root != "html" {
					return nil, nil, root, false
				}
			}
			if len(open) == 3 && (e.name == "body" || e.name == "frameset") {
				return metas, links, root, true
			}
			if !inXMLHead(open[1 : len(open)-1]) {
				continue
			}
			value := func(name string) string { return declared.expand(attribute(t.Attr, name)) }
			switch e.name {
			case "meta":
				if m, ok := named(value("name"), value("content")); ok {
					metas = append(metas, m)
				}
			case "link":
				if l, ok := toLicense(value("rel"), value("type"), value("href")); ok {
					links = append(links, l)
				}
			}
		case xml.EndElement:
			if t.Name != innermost.written {
				return metas, links, root, false
			}
			open = open[:len(open)-1]
			if len(open) == 2 && innermost.name == "head" {
				return metas, links, root, true
			}
		}
	}
	return metas, links, root, false
}

// inXMLHead reports whether the children of the innermost of the open elements are in the head.
func inXMLHead(open []xmlElement) bool {
	return len(open) >= 2 && open[1].name == "head" && (len(open) == 2 || len(open) == 3 && open[2].name == "noscript")
}

// An xmlElement is an open element of XML.
type xmlElement struct {
	written  xml.Name
	name     string          // in XHTML; "" in another namespace
	prefixes map[string]bool // that are bound (Namespaces in XML 1.0, section 3): whether to XHTML's namespace
}

const xhtmlNamespace = "http://www.w3.org/1999/xhtml"

// maxPrefixes bounds the prefixes that are kept.
const maxPrefixes = 64

// child returns the element in e that t starts. An element without a prefix, or with an
// unbound one, counts as XHTML: such pages contain a mistake but are meant to be XHTML.
func (e xmlElement) child(t xml.StartElement) xmlElement {
	prefixes := e.prefixes
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" && len(prefixes) < maxPrefixes {
			prefixes = maps.Clone(prefixes)
			prefixes[a.Name.Local] = a.Value == xhtmlNamespace
		}
	}
	name := t.Name.Local
	if xhtml, bound := prefixes[t.Name.Space]; bound && !xhtml {
		name = ""
	}
	return xmlElement{t.Name, name, prefixes}
}

// attribute returns the value of the first attribute with a name, as in HTML.
func attribute(attrs []xml.Attr, name string) string {
	i := slices.IndexFunc(attrs, func(a xml.Attr) bool { return a.Name == xml.Name{Local: name} })
	if i < 0 {
		return ""
	}
	return attrs[i].Value
}
