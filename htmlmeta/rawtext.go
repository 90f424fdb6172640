package htmlmeta

import (
	"bytes"

	"golang.org/x/net/html/atom"
)

// A rawText finds the end of an element whose content is text only, so that
// none of it need be kept: an inline style may be larger than all the rest of
// a page. It takes the text in pieces and copies nothing.
//
// A script hides its end tag behind "<!--" and a further "<script", by rules
// older than the standard that wrote them down (WHATWG HTML, sections 13.2.5.15
// to 13.2.5.31).
type rawText struct {
	name   string
	script bool
	escape escape
	hidden bool // escape was used
	dashes int  // in a row, just before
	within within
	n      int // letters of the tag's name that matched
}

type escape uint8

const (
	unescaped escape = iota
	escaped          // after <!--
	doubly           // after <!-- <script
)

// within is how far into something that looks like a tag the text is.
type within uint8

const (
	plainText within = iota
	lessThan         // <
	slash            // </
	endName          // </s…
	bang             // <!
	bangDash         // <!-
	startName        // <s…, while escaped
)

func newRawText(name atom.Atom) *rawText {
	return &rawText{name: name.String(), script: name == atom.Script}
}

// end returns the index in b of the byte that follows the name of the end
// tag, if it is in b.
func (t *rawText) end(b []byte) (i int, ok bool) {
	for i := 0; i < len(b); i++ {
		if t.within == plainText && t.escape == unescaped {
			next := bytes.IndexByte(b[i:], '<')
			if next < 0 {
				return 0, false
			}
			i += next
		}
		if t.step(b[i]) {
			return i, true
		}
	}
	return 0, false
}

// step takes one byte and reports whether it completes the end tag's name.
func (t *rawText) step(c byte) bool {
	switch t.within {
	case lessThan:
		switch {
		case c == '/':
			t.within = slash
			return false
		case c == '!' && t.script && t.escape == unescaped:
			t.within = bang
			return false
		case t.escape == escaped:
			t.within, t.n = startName, 0
			return t.step(c)
		}
	case slash:
		t.within, t.n = endName, 0
		return t.step(c)
	case endName:
		switch {
		case t.matches(c):
			return false
		case t.n < len(t.name) || !endsTagName(c):
		case t.escape == doubly:
			t.escape = escaped
			t.within = plainText
			return false
		default:
			return true
		}
	case startName:
		switch {
		case t.matches(c):
			return false
		case t.n == len(t.name) && endsTagName(c):
			t.escape = doubly
			t.within = plainText
			return false
		}
	case bang:
		if c == '-' {
			t.within = bangDash
			return false
		}
	case bangDash:
		if c == '-' {
			t.within = plainText
			t.escape, t.hidden, t.dashes = escaped, true, 2
			return false
		}
	}
	t.within = plainText
	t.text(c)
	return false
}

// text takes a byte that belongs to no tag.
func (t *rawText) text(c byte) {
	switch {
	case c == '<':
		t.within = lessThan
	case c == '-':
		t.dashes++
		return
	case c == '>' && t.dashes >= 2:
		t.escape = unescaped
	}
	t.dashes = 0
}

func (t *rawText) matches(c byte) bool {
	if t.n == len(t.name) || c|0x20 != t.name[t.n] {
		return false
	}
	t.n++
	return true
}
