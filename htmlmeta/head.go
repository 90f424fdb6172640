package htmlmeta

import (
	"bytes"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const space = " \t\n\f\r"

// A head finds where the head of a page ends (WHATWG HTML, section 13.2.6.4), and cuts out the tags that matter.
type head struct {
	xhtml      bool // names may have a prefix
	inNoscript bool // the page is the content of a <noscript>

	z         *html.Tokenizer
	after     bool      // </head> has been read
	text      atom.Atom // the element whose text comes next
	templates int       // that are open: their content is no part of the head
	cut       []byte    // the tags of named metas and of links that may be to licences, as written
	lower     []byte    // a tag in small letters, for the next one too
}

// scan reads up to the end of the head. It returns nil at the end of the head or of the page.
func (h *head) scan(r io.Reader) (err error) {
	h.z = html.NewTokenizer(r)
	for ended := false; !ended && err == nil; {
		element := h.text
		h.text = 0
		switch token := h.z.Next(); {
		case token == html.ErrorToken:
			if err = h.z.Err(); err == io.EOF {
				return nil
			}
		case token == html.StartTagToken, token == html.SelfClosingTagToken:
			ended = h.startTag()
		case token == html.EndTagToken:
			ended = h.endTag()
		case token != html.TextToken || h.templates > 0:
		case element == atom.Noscript:
			// This is text for a reader with scripting, and elements for one without. A site may mean either: metas in it
			// count, and what in it would end the head does not.
			in := head{xhtml: h.xhtml, inNoscript: true, cut: h.cut}
			err = in.scan(bytes.NewReader(h.z.Raw()))
			h.cut = in.cut
		case element == 0:
			text := bytes.TrimLeft(h.z.Raw(), space)
			// Before an error this may be the beginning of a tag, or of a reference to white space.
			whole := len(h.z.Buffered()) > 0 || len(text) > 0 && text[0] != '<' && text[0] != '&'
			ended = whole && len(bytes.Trim(h.z.Text(), space)) > 0
		}
	}
	return err
}

// startTag handles a start tag and reports whether it ends the head.
func (h *head) startTag() (ended bool) {
	raw := h.z.Raw()
	name, more := h.z.TagName()
	if _, local, ok := bytes.Cut(name, []byte(":")); ok && h.xhtml {
		name = local
	}
	element := atom.Lookup(name)
	if h.templates == 0 && (element == atom.Meta && h.contains(raw, "name") ||
		element == atom.Link && (h.contains(raw, "license") || bytes.IndexByte(raw, '&') > 0)) {
		begin, wanted := len(h.cut), element == atom.Link
		h.cut = append(append(append(h.cut, '<'), name...), raw[bytes.IndexAny(raw, space+"/>"):]...) // TagAttr changes raw
		for key := []byte(nil); more && !wanted; {
			key, _, more = h.z.TagAttr()
			wanted = string(key) == "name"
		}
		if !wanted {
			h.cut = h.cut[:begin]
		}
	}
	switch element {
	case atom.Template:
		h.templates++
	case atom.Noscript:
		if h.inNoscript {
			h.z.NextIsNotRawText() // the tag is ignored
			break
		}
		h.text, ended = element, h.after
	case atom.Script, atom.Style, atom.Title, atom.Noframes:
		h.text = element
	case atom.Base, atom.Basefont, atom.Bgsound, atom.Link, atom.Meta, atom.Html, atom.Head:
	default:
		ended = true
	}
	return ended && h.templates == 0
}

// contains reports whether a tag has a word, which is in small letters, in letters of any case.
func (h *head) contains(tag []byte, word string) bool {
	h.lower = append(h.lower[:0], tag...)
	for i := range h.lower {
		h.lower[i] |= 'a' - 'A' // no other byte becomes a letter
	}
	return bytes.Contains(h.lower, []byte(word))
}

// endTag handles an end tag and reports whether it ends the head.
func (h *head) endTag() (ended bool) {
	name, _ := h.z.TagName()
	switch element := atom.Lookup(name); {
	case h.templates > 0:
		if element == atom.Template {
			h.templates--
		}
	case element == atom.Head:
		h.after = true // elements of the head may still follow
	case element == atom.Br, !h.inNoscript && (element == atom.Body || element == atom.Html):
		return true
	}
	return false
}
