package htmlmeta

import (
	"encoding/xml"
	"slices"
)

// prefixes are those that open elements have bound to a namespace (Namespaces
// in XML 1.0, section 3), the innermost last.
type prefixes []prefix

type prefix struct {
	name  string
	html  bool // bound to XHTML's namespace
	depth int  // of the element that binds it
}

const xhtmlNamespace = "http://www.w3.org/1999/xhtml"

// maxPrefixes bounds how many are kept; no head needs as many.
const maxPrefixes = 64

// bind takes note of what the attributes of an element bind.
func (p *prefixes) bind(attrs []xml.Attr, depth int) {
	for _, a := range attrs {
		if a.Name.Space == "xmlns" && len(*p) < maxPrefixes {
			*p = append(*p, prefix{a.Name.Local, a.Value == xhtmlNamespace, depth})
		}
	}
}

// leave forgets what was bound at this depth or further in.
func (p *prefixes) leave(depth int) {
	for len(*p) > 0 && (*p)[len(*p)-1].depth >= depth {
		*p = (*p)[:len(*p)-1]
	}
}

// htmlName returns the local name of an element, or "" if its prefix says that
// it is of another namespace than XHTML. Without a prefix, or with one that
// nothing binds, the local name has to do: a page with a slip in its namespace
// is meant to be XHTML all the same.
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
