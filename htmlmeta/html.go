package htmlmeta

import (
	"bytes"
	"io"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// scanHTML returns the metas of an HTML page's head. A nil error means that
// the head, or the page, was read to its end.
//
// What is in a <noscript> is an element for readers without scripting and text
// for the others, and either may find that the head ends where the other
// doesn't. A site that speaks to one of them speaks to us: both are read.
//
// It uses off, which is empty.
func scanHTML(off *head, p *page) ([]Meta, error) {
	return scanHTMLFrom(p, off, p)
}

// scanHTMLFrom reads a page from r, whose encoding is that of p.
func scanHTMLFrom(r io.Reader, off *head, p *page) ([]Meta, error) {
	off.r = r
	err := off.scan()
	metas := off.metas(p)
	var more []Meta
	if on := off.fork; on != nil {
		on.r = off.r.(*recorder).again()
		if e := on.scan(); err == nil {
			err = e
		}
		more = on.metas(p)
	}
	return union(metas, more), err
}

// metas returns the named metas of the head that was kept.
func (h *head) metas(p *page) []Meta {
	if !h.named {
		return nil
	}
	reduced := p.text(h.kept)
	if metas, ok := plain(reduced); ok {
		return metas
	}
	if !h.noscript {
		if metas, ok := flat(reduced); ok {
			return metas
		}
	}
	return tree(reduced, h.scripting)
}

// tree returns the named metas of a reduced page.
func tree(reduced []byte, scripting bool) []Meta {
	// What was kept has four levels at most, so the parser's limit on depth
	// can't be met, and it knows no other error.
	root, err := html.ParseWithOptions(bytes.NewReader(reduced), html.ParseOptionEnableScripting(scripting))
	if err != nil {
		return nil
	}
	var metas []Meta
	// Not "head meta": that would be what is inside a <template> too.
	found := goquery.NewDocumentFromNode(root).Find("head > meta, head > noscript > meta")
	for _, n := range found.Nodes {
		if m, ok := named(n.Attr); ok {
			metas = append(metas, m)
		}
	}
	return metas
}

// flat returns the same of a page that consists of metas only, which all go into
// the head: no tree need be built to tell. If ok is false there is something else.
func flat(reduced []byte) (metas []Meta, ok bool) {
	z := html.NewTokenizer(bytes.NewReader(reduced))
	for z.Next() != html.ErrorToken {
		t := z.Token()
		if t.DataAtom != atom.Meta || t.Type == html.EndTagToken {
			return nil, false
		}
		if m, ok := named(t.Attr); ok {
			metas = append(metas, m)
		}
	}
	return metas, true
}

// named returns the meta of these attributes, if it has a name and content.
func named(attrs []html.Attribute) (m Meta, ok bool) {
	for _, a := range attrs {
		switch {
		case a.Namespace != "":
		case a.Key == "name":
			m.Name = strings.TrimSpace(a.Val)
		case a.Key == "content":
			m.Content = a.Val
		}
	}
	return m, m.Name != "" && m.Content != ""
}
