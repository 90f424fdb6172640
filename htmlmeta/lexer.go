package htmlmeta

import (
	"bytes"
	"io"
	"slices"

	"golang.org/x/net/html/atom"
)

// A lexer finds where the tokens of a page end (WHATWG HTML, section 13.2.5).
// It keeps only the attributes that its caller wants, so a large token needs no more
// memory than a small one. It reads from r only when it has used all that it read before,
// so that it never waits for bytes that it does not need.
//
// Its methods do nothing once err is set, and their results are void then.
type lexer struct {
	r      io.Reader
	window [4 << 10]byte
	i, n   int   // window[i:n] has not been used yet
	after  error // of r, after window[i:n]
	err    error // of r, once all is used

	attrName []byte // buffer of attributes
}

func (l *lexer) rest() []byte { return l.window[l.i:l.n] }

// more reads from r, and reports whether there are more bytes. It is called when rest is
// empty.
func (l *lexer) more() bool {
	for range 100 { // as bufio.Reader
		if l.err = l.after; l.err != nil {
			return false
		}
		l.i = 0
		if l.n, l.after = l.r.Read(l.window[:]); l.n > 0 {
			return true
		}
	}
	l.after, l.err = io.ErrNoProgress, io.ErrNoProgress
	return false
}

// peek returns the next byte without using it.
func (l *lexer) peek() byte {
	if l.i == l.n && !l.more() {
		return 0
	}
	return l.window[l.i]
}

// used marks what peek returned as used.
func (l *lexer) used() {
	if l.err == nil {
		l.i++
	}
}

// next uses a byte.
func (l *lexer) next() byte {
	c := l.peek()
	l.used()
	return c
}

// readTo reads all bytes before the one that index returns, and appends them to b
// unless that is nil. Where there is none, index returns -1.
func (l *lexer) readTo(index func([]byte) int, b *[]byte) {
	for {
		rest := l.rest()
		n := index(rest)
		ended := n >= 0
		if !ended {
			n = len(rest)
		}
		if b != nil {
			*b = append(*b, rest[:n]...)
		}
		l.i += n
		if ended || !l.more() {
			return
		}
	}
}

// skipTo skips all bytes before the next c.
func (l *lexer) skipTo(c byte) { l.readTo(indexOf(c), nil) }

// skipPast skips the next c too.
func (l *lexer) skipPast(c byte) {
	l.skipTo(c)
	l.used()
}

func (l *lexer) skipSpace() {
	l.readTo(func(b []byte) int {
		return slices.IndexFunc(b, func(c byte) bool { return !isSpace(c) })
	}, nil)
}

func indexOf(c byte) func([]byte) int {
	return func(b []byte) int { return bytes.IndexByte(b, c) }
}

// name reads a tag's name. It returns 0 for an unknown name.
func (l *lexer) name() atom.Atom {
	var lower [16]byte
	n := 0
	for c := l.peek(); !endsTagName(c) && l.err == nil; c = l.peek() {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if n < len(lower) {
			lower[n] = c
		}
		n++
		l.i++
	}
	if n > len(lower) {
		return 0
	}
	return atom.Lookup(lower[:n])
}

// attributes reads the rest of a tag after its name (13.2.5.32 to 13.2.5.40) and
// reports whether the tag is self-closing. It appends the value of each attribute, as
// written, to the buffer that keep returns for its name. keep may be nil, and may
// return nil.
func (l *lexer) attributes(keep func(name []byte) *[]byte) (selfClosing bool) {
	for {
		c := l.next()
		switch {
		case l.err != nil || c == '>':
			return selfClosing
		case c == '/' || isSpace(c):
			selfClosing = c == '/'
			continue
		}
		selfClosing = false
		name := l.attributeName(keep != nil)
		var value *[]byte
		if keep != nil {
			value = keep(name)
		}
		l.value(value)
	}
}

// attributeName reads the name of an attribute after its first byte, which may also be a "=", and
// returns all of it if the caller wants it. The name is valid until more is read.
func (l *lexer) attributeName(wanted bool) []byte {
	start := l.i - 1 // next has used that byte of window
	if n := nameEnd(l.rest()); n >= 0 {
		l.i += n
		return l.window[start:l.i]
	}
	if !wanted {
		l.readTo(nameEnd, nil)
		return nil
	}
	l.attrName = append(l.attrName[:0], l.window[start])
	l.readTo(nameEnd, &l.attrName)
	return l.attrName
}

// value reads the value of an attribute after its name, if there is one.
func (l *lexer) value(to *[]byte) {
	if l.afterSpace() != '=' {
		return
	}
	l.used()
	if c := l.afterSpace(); c == '"' || c == '\'' {
		l.used()
		l.readTo(indexOf(c), to)
		l.used()
		return
	}
	l.readTo(valueEnd, to)
}

// afterSpace skips white space and returns the next byte without using it.
func (l *lexer) afterSpace() byte {
	if c := l.peek(); !isSpace(c) {
		return c
	}
	l.skipSpace()
	return l.peek()
}

// nameEnd returns the index of the first byte after an attribute's name.
func nameEnd(b []byte) int {
	for i, c := range b {
		if c == '=' || endsTagName(c) {
			return i
		}
	}
	return -1
}

// valueEnd returns the index of the first byte after a value without quotes.
func valueEnd(b []byte) int {
	return slices.IndexFunc(b, func(c byte) bool { return c == '>' || isSpace(c) })
}

// declaration skips a comment, document type or CDATA section, of which "<!" has
// been read (13.2.5.42). CDATA sections exist in foreign content only.
func (l *lexer) declaration(foreign bool) {
	switch c := l.peek(); {
	case c == '-' && l.begins("--"):
		l.comment()
	case c == '[' && foreign && l.begins("[CDATA["):
		l.cdata()
	default:
		l.skipPast('>')
	}
}

// begins uses the bytes that match the beginning of word, and reports whether all
// of word matched.
func (l *lexer) begins(word string) bool {
	for i := range len(word) {
		if l.peek() != word[i] {
			return false
		}
		l.used()
	}
	return true
}

// comment skips a comment after its "<!--" (13.2.5.43 to 13.2.5.51).
func (l *lexer) comment() {
	// "<!-->" is a whole comment: "-->" may share the dashes of "<!--". "--!>"
	// needs dashes of its own.
	for dashes, own := 2, 0; l.err == nil; {
		switch c := l.next(); {
		case c == '-':
			dashes++
			own++
			continue
		case c == '>' && dashes >= 2:
			return
		case c == '!' && own >= 2 && l.peek() == '>':
			l.used()
			return
		}
		dashes, own = 0, 0
		l.skipTo('-')
	}
}

// cdata skips a CDATA section after its "<![CDATA[".
func (l *lexer) cdata() {
	for brackets := 0; l.err == nil; {
		switch c := l.next(); {
		case c == ']':
			brackets++
		case c == '>' && brackets >= 2:
			return
		default:
			brackets = 0
		}
	}
}
