package htmlmeta

import (
	"bytes"
	"io"
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// An insertionMode is the state of the HTML standard's tree builder, as far as
// it can be in before the body begins (WHATWG HTML, section 13.2.6.4).
type insertionMode uint8

const (
	beforeHead     insertionMode = iota // also "initial" and "before html"
	inHead                              // 13.2.6.4.4
	inHeadNoscript                      // 13.2.6.4.5, only with scripting off
	afterHead                           // 13.2.6.4.6
	inTemplate                          // "in template" and whatever else a template holds
)

// A head finds the end of the head and keeps what of it can hold a meta.
//
// It drops what can neither hold a meta nor change where the next one goes:
// text, comments, links, scripts, styles, templates. What is left is a page of
// a few hundred bytes, whose tree costs next to nothing and can't be deep.
type head struct {
	feed      feed
	z         *html.Tokenizer
	scripting bool
	mode      insertionMode
	resume    insertionMode // after the template
	template  template
	raw       bool         // the next token is an element's raw text
	kept      bytes.Buffer // the reduced page, for the tree builder
	named     bool         // kept has a meta that may have a name and content

	// With scripting off, what was found until the first <noscript>, and
	// everything from there on, for reading it once more with scripting on.
	fork *head

	maxBuf int
}

// maxToken bounds what the tokenizer buffers beyond the page's own limit, which
// comes first: a token is never larger than its page.
const maxToken = 4 << 10

// scan reads up to the end of the head. It returns nil if that was found or
// the page ended before.
func (h *head) scan(maxPage int) error {
	h.feed.over = h.over
	h.maxBuf = maxPage + maxToken
	h.tokenize()
	for {
		h.feed.begin(h.z.Buffered(), !h.raw && h.mode != inTemplate)
		if h.feed.done() {
			return nil
		}
		token := h.z.Next()
		if h.feed.stopped {
			return nil
		}
		raw := h.raw
		h.raw = false
		ended := false
		switch token {
		case html.ErrorToken:
			switch err := h.z.Err(); err {
			case io.EOF:
				return nil
			case html.ErrBufferExceeded:
				return errLimit
			default:
				return err
			}
		case html.TextToken:
			cut := h.feed.cut && len(h.z.Buffered()) == 0
			ended = !raw && !cut && h.mode != inTemplate && !blank(h.z.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			ended = h.startTag(token == html.SelfClosingTagToken)
		case html.EndTagToken:
			ended = h.endTag(tagName(h.z.Raw()[2:]))
		}
		if ended {
			return nil
		}
	}
}

// tokenize begins to read tokens from the feed.
func (h *head) tokenize() {
	h.z = html.NewTokenizer(&h.feed)
	h.z.SetMaxBuf(h.maxBuf)
}

// rawText handles the content of an element that holds only text. The
// tokenizer would keep all of it as one token, so it gets only texts that it
// has in its buffer already.
func (h *head) rawText(name atom.Atom) {
	t := newRawText(name)
	// Nor does it get scripts that hide their end: it takes "<!-- <" for the
	// end of the escaped text, which it isn't (13.2.5.23).
	if _, ok := t.end(h.z.Buffered()); ok && !t.hidden {
		h.raw = true
		return
	}
	h.feed.skip(newRawText(name), h.z.Buffered())
	h.tokenize()
}

// startTag handles a start tag and reports whether it ends the head.
func (h *head) startTag(selfClosing bool) bool {
	name := tagName(h.z.Raw()[1:])
	if h.mode == inTemplate {
		return h.inTemplate(name, selfClosing)
	}
	if h.mode == inHeadNoscript && !staysInNoscript(name) {
		h.mode = inHead
		h.kept.WriteString("</noscript>")
	}
	switch name {
	case atom.Html:
		return false
	case atom.Head:
		if h.mode == beforeHead {
			h.mode = inHead
		}
		return false
	}
	if endsHead(name, h.mode) {
		return true
	}
	if h.mode == beforeHead {
		h.mode = inHead
	}
	switch name {
	case atom.Meta:
		raw := h.z.Raw()
		h.kept.Write(raw)
		h.named = h.named || containsFold(raw, "name") && containsFold(raw, "content")
	case atom.Noscript:
		h.noscript()
	case atom.Script, atom.Style, atom.Title, atom.Noframes:
		h.rawText(name)
	case atom.Template:
		h.resume, h.mode = h.mode, inTemplate
		h.template.begin()
	}
	return false
}

// endsHead reports whether a start tag ends the head: any does that isn't
// listed for the mode.
func endsHead(name atom.Atom, mode insertionMode) bool {
	switch name {
	case atom.Base, atom.Basefont, atom.Bgsound, atom.Link, atom.Meta,
		atom.Script, atom.Style, atom.Title, atom.Noframes, atom.Template,
		atom.Html, atom.Head:
		return false
	case atom.Noscript:
		return mode == afterHead
	}
	return true
}

// staysInNoscript reports whether a start tag in a head's <noscript> leaves it
// open. Others close it and are handled as if it hadn't been there.
func staysInNoscript(name atom.Atom) bool {
	switch name {
	case atom.Basefont, atom.Bgsound, atom.Link, atom.Meta, atom.Noframes, atom.Style,
		atom.Html, atom.Head, atom.Noscript:
		return true
	}
	return false
}

// noscript handles its start tag in the head.
func (h *head) noscript() {
	if h.scripting {
		h.rawText(atom.Noscript)
		return
	}
	if h.fork == nil {
		h.forkHere()
	}
	h.z.NextIsNotRawText()
	if h.mode != inHeadNoscript {
		h.mode = inHeadNoscript
		h.kept.WriteString("<noscript>")
	}
}

// forkHere lets a second reader begin at this start tag.
func (h *head) forkHere() {
	rec := &recorder{r: h.feed.r}
	rec.kept.Write(h.z.Raw())
	rec.kept.Write(h.z.Buffered())
	for _, b := range slices.Backward(h.feed.pending) {
		rec.kept.Write(b)
	}
	h.feed.r = rec
	h.fork = &head{scripting: true, mode: h.mode, named: h.named}
	h.fork.kept.Write(h.kept.Bytes())
}

// endTag handles an end tag and reports whether it ends the head.
func (h *head) endTag(name atom.Atom) bool {
	if h.mode == inTemplate {
		h.template.end(name)
		h.z.AllowCDATA(h.template.foreign())
		if !h.template.open() {
			h.mode = h.resume
		}
		return false
	}
	switch name {
	case atom.Body, atom.Html, atom.Br:
		// In a <noscript> only </br> does; the others are ignored there.
		return h.mode != inHeadNoscript || name == atom.Br
	case atom.Head:
		if h.mode != inHeadNoscript {
			h.mode = afterHead // the head's elements may still go on after it
		}
	case atom.Noscript:
		if h.mode == inHeadNoscript {
			h.mode = inHead
			h.kept.WriteString("</noscript>")
		}
	}
	return false
}

// inTemplate handles a start tag in a template. It reports true after a
// <plaintext>, which nothing ends.
func (h *head) inTemplate(name atom.Atom, selfClosing bool) bool {
	isHTML := h.template.start(name, selfClosing)
	if !isHTML || name == atom.Noscript && !h.scripting {
		h.z.NextIsNotRawText()
	}
	h.z.AllowCDATA(h.template.foreign())
	return isHTML && name == atom.Plaintext
}

// tagName returns the atom of the tag name at the beginning of b, or 0 for an
// unknown one.
func tagName(b []byte) atom.Atom {
	var lower [16]byte
	n := 0
	for _, c := range b {
		if endsTagName(c) {
			return atom.Lookup(lower[:n])
		}
		if n == len(lower) {
			return 0
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[n] = c
		n++
	}
	return atom.Lookup(lower[:n])
}

func endsTagName(c byte) bool {
	return isSpace(c) || c == '/' || c == '>'
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'
}

func blank(b []byte) bool {
	for _, c := range b {
		if !isSpace(c) {
			return false
		}
	}
	return true
}

// containsFold reports whether b contains a lower-case ASCII word in any case.
func containsFold(b []byte, word string) bool {
	for i := 0; i+len(word) <= len(b); i++ {
		if b[i]|0x20 == word[0] && bytes.EqualFold(b[i:i+len(word)], []byte(word)) {
			return true
		}
	}
	return false
}
