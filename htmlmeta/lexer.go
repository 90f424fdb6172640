package htmlmeta

import (
	"bytes"
	"io"

	"golang.org/x/net/html/atom"
)

// A lexer finds where the tokens of a page end (WHATWG HTML, section 13.2.5).
// It keeps nothing of them, so a large token needs no more memory than a small
// one. It reads from r only when it has used all that it read before, so that it
// never waits for bytes that it does not need.
//
// An error of its methods is that of r.
type lexer struct {
	r      io.Reader
	window [4 << 10]byte
	i, n   int   // window[i:n] has not been used yet
	err    error // of r, to be returned after window[i:n]
}

func (l *lexer) rest() []byte { return l.window[l.i:l.n] }

// more reads from r. It is called when rest is empty.
func (l *lexer) more() error {
	if l.err != nil {
		return l.err
	}
	n, err := readSome(l.r, l.window[:])
	l.i, l.n, l.err = 0, n, err
	if n > 0 {
		return nil
	}
	return err
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

// skipTo skips all bytes before the next c.
func (l *lexer) skipTo(c byte) error {
	for {
		if i := bytes.IndexByte(l.rest(), c); i >= 0 {
			l.i += i
			return nil
		}
		if err := l.more(); err != nil {
			return err
		}
	}
}

// skipPast skips the next c too.
func (l *lexer) skipPast(c byte) error {
	err := l.skipTo(c)
	if err == nil {
		l.used()
	}
	return err
}

func (l *lexer) skipSpace() error {
	for {
		for i, c := range l.rest() {
			if !isSpace(c) {
				l.i += i
				return nil
			}
		}
		if err := l.more(); err != nil {
			return err
		}
	}
}

// name reads a tag's name. It returns 0 for an unknown name.
func (l *lexer) name() (atom.Atom, error) {
	var lower [16]byte
	for n := 0; ; {
		for i, c := range l.rest() {
			switch {
			case endsTagName(c):
				l.i += i
				if n > len(lower) {
					return 0, nil
				}
				return atom.Lookup(lower[:n]), nil
			case 'A' <= c && c <= 'Z':
				c += 'a' - 'A'
			}
			if n < len(lower) {
				lower[n] = c
			}
			n++
		}
		if err := l.more(); err != nil {
			return 0, err
		}
	}
}

// attributes reads the rest of a tag, appends it to kept unless that is nil, and
// reports whether the tag is self-closing.
func (l *lexer) attributes(kept *[]byte) (closed bool, err error) {
	var t tag
	for {
		n, ended := t.end(l.rest())
		if kept != nil {
			*kept = append(*kept, l.rest()[:n]...)
		}
		l.i += n
		if ended {
			return t == selfClosing, nil
		}
		if err := l.more(); err != nil {
			return false, err
		}
	}
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

// comment skips a comment whose "<!--" has been read (13.2.5.43 to 13.2.5.51).
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

// cdata skips a CDATA section whose "<![CDATA[" has been read.
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
