package htmlmeta

import (
	"encoding/xml"
	"slices"
)

// prefixes are the namespace bindings of the open elements (Namespaces in XML
// 1.0, section 3), the innermost last.
type prefixes []prefix

type prefix struct {
	name  string
	html  bool // bound to XHTML's namespace
	depth int  // of the element with the binding
}

const xhtmlNamespace = "http://www.w3.org/1999/xhtml"

// maxPrefixes bounds the bindings that are kept.
const maxPrefixes = 64

// bind adds the bindings in the attributes of an element.
func (p *prefixes) bind(attrs []xml.Attr, depth int) {
	for _, a := range attrs {
		if a.Name.Space == "xmlns" && len(*p) < maxPrefixes {
			*p = append(*p, prefix{a.Name.Local, a.Value == xhtmlNamespace, depth})
		}
	}
}

// leave removes the bindings of elements at this depth or deeper.
func (p *prefixes) leave(depth int) {
	for len(*p) > 0 && (*p)[len(*p)-1].depth >= depth {
		*p = (*p)[:len(*p)-1]
	}
}

// htmlName returns the local name of an element, or "" if its prefix is bound to
// another namespace than XHTML. An element without a prefix, or with an unbound
// one, counts as XHTML: such pages contain a mistake but are meant to be XHTML.
func (p prefixes) htmlName(n xml.Name) string {
	if n.Space != "" {
		for _, b := range slices.Backward(p) {
			if b.name != n.Space {
				continue
			}
			if !b.html {
				return ""
			}
			break
		}
	}
	return n.Local
}
