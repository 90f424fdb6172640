package htmlmeta

import (
	"bytes"
	"io"
	"slices"

	"golang.org/x/net/html/atom"
)

// A lexer finds where the tokens of a page end (WHATWG HTML, section 13.2.5).
// It keeps only the name of a tag and the attributes that its caller wants. It reads from r
// only when it has used all that it read before, so that it never waits for bytes that it
// does not need.
//
// An error of its methods is that of r.
type lexer struct {
	r      io.Reader
	window [4 << 10]byte
	i, n   int   // window[i:n] has not been used yet
	err    error // of r, to be returned after window[i:n]

	word  []byte   // the name of a tag or an attribute
	short [16]byte // the memory of short words
}

func (l *lexer) rest() []byte { return l.window[l.i:l.n] }

// more reads from r. It is called when rest is empty.
func (l *lexer) more() error {
	for range 100 { // as bufio.Reader
		if l.err != nil {
			return l.err
		}
		l.i = 0
		if l.n, l.err = l.r.Read(l.window[:]); l.n > 0 {
			return nil
		}
	}
	return io.ErrNoProgress
}

// peek returns the next byte without using it.
func (l *lexer) peek() (byte, error) {
	if l.i == l.n {
		if err := l.more(); err != nil {
			return 0, err
		}
	}
	return l.window[l.i], nil
}

// used marks what peek returned as used.
func (l *lexer) used() { l.i++ }

// next uses a byte.
func (l *lexer) next() (byte, error) {
	c, err := l.peek()
	if err == nil {
		l.used()
	}
	return c, err
}

// readTo reads all bytes before the one that index returns, and appends them to b
// unless that is nil. Where there is none, index returns -1.
func (l *lexer) readTo(index func([]byte) int, b *[]byte) error {
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
		if ended {
			return nil
		}
		if err := l.more(); err != nil {
			return err
		}
	}
}

// skipTo skips all bytes before the next c.
func (l *lexer) skipTo(c byte) error { return l.readTo(indexOf(c), nil) }

// skipPast skips the next c too.
func (l *lexer) skipPast(c byte) error {
	err := l.skipTo(c)
	if err == nil {
		l.used()
	}
	return err
}

func (l *lexer) skipSpace() error {
	return l.readTo(func(b []byte) int {
		return slices.IndexFunc(b, func(c byte) bool { return !isSpace(c) })
	}, nil)
}

func indexOf(c byte) func([]byte) int {
	return func(b []byte) int { return bytes.IndexByte(b, c) }
}

// name reads a tag's name. It returns 0 for an unknown name.
func (l *lexer) name() (atom.Atom, error) {
	l.word = l.short[:0]
	err := l.readTo(tagNameEnd, &l.word)
	for i, c := range l.word {
		if 'A' <= c && c <= 'Z' {
			l.word[i] = c + 'a' - 'A'
		}
	}
	return atom.Lookup(l.word), err
}

// attributes reads the rest of a tag after its name (13.2.5.32 to 13.2.5.40) and
// reports whether the tag is self-closing. It appends the value of each attribute, as
// written, to the buffer that keep returns for its name. keep may be nil, and may
// return nil.
func (l *lexer) attributes(keep func(name []byte) *[]byte) (selfClosing bool, err error) {
	for {
		c, err := l.next()
		switch {
		case err != nil:
			return false, err
		case c == '>':
			return selfClosing, nil
		case c == '/' || isSpace(c):
			selfClosing = c == '/'
			continue
		}
		selfClosing = false
		var name *[]byte
		if keep != nil {
			l.word = append(l.word[:0], c) // also a "=", without a name before it
			name = &l.word
		}
		if err := l.readTo(nameEnd, name); err != nil {
			return false, err
		}
		var value *[]byte
		if keep != nil {
			value = keep(l.word)
		}
		if err := l.value(value); err != nil {
			return false, err
		}
	}
}

// value reads the value of an attribute after its name, if there is one.
func (l *lexer) value(to *[]byte) error {
	c, err := l.afterSpace()
	if err != nil || c != '=' {
		return err
	}
	l.used()
	if c, err = l.afterSpace(); err != nil {
		return err
	}
	if c != '"' && c != '\'' {
		return l.readTo(valueEnd, to)
	}
	l.used()
	if err = l.readTo(indexOf(c), to); err == nil {
		l.used()
	}
	return err
}

// afterSpace skips white space and returns the next byte without using it.
func (l *lexer) afterSpace() (byte, error) {
	c, err := l.peek()
	if err != nil || !isSpace(c) {
		return c, err
	}
	if err := l.skipSpace(); err != nil {
		return 0, err
	}
	return l.peek()
}

// tagNameEnd returns the index of the first byte after a tag's name.
func tagNameEnd(b []byte) int { return slices.IndexFunc(b, endsTagName) }

// nameEnd returns the index of the first byte after an attribute's name.
func nameEnd(b []byte) int {
	return slices.IndexFunc(b, func(c byte) bool { return c == '=' || endsTagName(c) })
}

// valueEnd returns the index of the first byte after a value without quotes.
func valueEnd(b []byte) int {
	return slices.IndexFunc(b, func(c byte) bool { return c == '>' || isSpace(c) })
}

// declaration skips a comment, document type or CDATA section, of which "<!" has
// been read (13.2.5.42). CDATA sections exist in foreign content only.
func (l *lexer) declaration(foreign bool) error {
	c, err := l.peek()
	begins := false
	switch {
	case err != nil:
		return err
	case c == '-':
		if begins, err = l.begins("--"); begins {
			return l.comment()
		}
	case c == '[' && foreign:
		if begins, err = l.begins("[CDATA["); begins {
			return l.cdata()
		}
	}
	if err != nil {
		return err
	}
	return l.skipPast('>')
}

// begins uses the bytes that match the beginning of word, and reports whether all
// of word matched.
func (l *lexer) begins(word string) (bool, error) {
	for i := range len(word) {
		if c, err := l.peek(); err != nil || c != word[i] {
			return false, err
		}
		l.used()
	}
	return true, nil
}

// comment skips a comment after its "<!--" (13.2.5.43 to 13.2.5.51).
func (l *lexer) comment() error {
	// "<!-->" is a whole comment: "-->" may share the dashes of "<!--". "--!>"
	// needs dashes of its own.
	for dashes, own := 2, 0; ; {
		c, err := l.next()
		if err != nil {
			return err
		}
		switch {
		case c == '-':
			dashes++
			own++
			continue
		case c == '>' && dashes >= 2:
			return nil
		case c == '!' && own >= 2:
			if c, err := l.peek(); err != nil || c == '>' {
				return l.skipPast('>')
			}
		}
		dashes, own = 0, 0
		if err := l.skipTo('-'); err != nil {
			return err
		}
	}
}

// cdata skips a CDATA section after its "<![CDATA[".
func (l *lexer) cdata() error {
	for brackets := 0; ; {
		c, err := l.next()
		switch {
		case err != nil:
			return err
		case c == ']':
			brackets++
		case c == '>' && brackets >= 2:
			return nil
		default:
			brackets = 0
		}
	}
}
