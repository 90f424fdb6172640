package htmlmeta

import "golang.org/x/net/html/atom"

// rawText skips the content of an element that holds only text, and its end
// tag (WHATWG HTML, sections 13.2.5.2 to 13.2.5.4). The text is not kept: an
// inline style may be larger than the rest of the page.
func (l *lexer) rawText(name atom.Atom) error {
	for {
		if err := l.skipPast('<'); err != nil {
			return err
		}
		c, err := l.peek()
		ended := false
		switch {
		case err != nil:
		case c == '/':
			l.used()
			ended, err = l.hasName(name.String())
		case c == '!' && name == atom.Script:
			l.used()
			var escaped bool
			if escaped, err = l.begins("--"); escaped {
				ended, err = l.escapedScript()
			}
		}
		if err == nil && ended {
			_, err = l.attributes(nil)
			return err
		}
		if err != nil {
			return err
		}
	}
}

// escapedScript skips the text of a script after "<!--", in which a "<script"
// hides the next "</script>" (13.2.5.15 to 13.2.5.31). It reports whether the
// script has ended; otherwise "-->" has ended the escaped text.
func (l *lexer) escapedScript() (ended bool, err error) {
	hidden := false // after <script
	dashes := 2     // in a row, just before; those of "<!--" count
	for {
		c, err := l.next()
		if err != nil {
			return false, err
		}
		switch {
		case c == '-':
			dashes++
			continue
		case c == '>' && dashes >= 2:
			return false, nil
		case c == '<':
			slash, err := l.begins("/")
			if err != nil {
				return false, err
			}
			script, err := l.hasName("script")
			if err != nil {
				return false, err
			}
			if script && slash && !hidden {
				return true, nil
			}
			if script {
				hidden = !slash
			}
		}
		dashes = 0
	}
}

// hasName uses as much of a lower-case tag name as follows, and reports whether
// all of it did, in any case, and the name ends there.
func (l *lexer) hasName(name string) (bool, error) {
	for i := range len(name) {
		if c, err := l.peek(); err != nil || c|0x20 != name[i] {
			return false, err
		}
		l.used()
	}
	c, err := l.peek()
	return err == nil && endsTagName(c), err
}
