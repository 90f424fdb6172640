package htmlmeta

import "golang.org/x/net/html/atom"

// rawText skips the content of an element that holds only text, and its end
// tag (WHATWG HTML, sections 13.2.5.2 to 13.2.5.4). The text is not kept: an
// inline style may be larger than the rest of the page.
func (l *lexer) rawText(name atom.Atom) {
	for ended := false; !ended && l.err == nil; {
		l.skipPast('<')
		switch c := l.peek(); {
		case c == '/':
			l.used()
			ended = l.hasName(name.String())
		case c == '!' && name == atom.Script:
			l.used()
			ended = l.begins("--") && l.escapedScript()
		}
	}
	l.attributes(nil)
}

// escapedScript skips the text of a script after "<!--", in which a "<script"
// hides the next "</script>" (13.2.5.15 to 13.2.5.31). It reports whether the
// script has ended; otherwise "-->" has ended the escaped text.
func (l *lexer) escapedScript() (ended bool) {
	hidden := false // after <script
	dashes := 2     // in a row, just before; those of "<!--" count
	for l.err == nil {
		switch c := l.next(); {
		case c == '-':
			dashes++
			continue
		case c == '>' && dashes >= 2:
			return false
		case c == '<':
			slash := l.begins("/")
			if l.hasName("script") {
				if slash && !hidden {
					return true
				}
				hidden = !slash
			}
		}
		dashes = 0
	}
	return false
}

// hasName uses as much of a lower-case tag name as follows, and reports whether
// all of it did, in any case, and the name ends there.
func (l *lexer) hasName(name string) bool {
	for i := range len(name) {
		if l.peek()|0x20 != name[i] {
			return false
		}
		l.used()
	}
	return endsTagName(l.peek())
}
