package htmlmeta

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// An insertionMode is a state that the HTML standard's tree builder can have
// before the body begins (WHATWG HTML, section 13.2.6.4).
type insertionMode uint8

const (
	beforeHead     insertionMode = iota // also "initial" and "before html"
	inHead                              // 13.2.6.4.4
	inHeadNoscript                      // 13.2.6.4.5, only with scripting off
	afterHead                           // 13.2.6.4.6
	inTemplate                          // "in template" and all modes inside it
)

// A head finds the end of the head and keeps its metas and links, as reduced pages of a
// few hundred bytes. A tree of that costs little and cannot be deep. All other
// elements, text and comments are skipped without keeping them.
type head struct {
	lexer
	scripting bool
	mode      insertionMode
	resume    insertionMode // mode after the template
	template  template
	kept      []byte // the reduced page: the metas that matter
	keptLinks []byte // the same of the links that matter

	values [3][]byte // of the last tag, see readValues
	small  struct {  // the memory of short ones
		kept   [512]byte
		values [3][512]byte
	}

	// fork reads the page from the first <noscript> on once more, with scripting
	// on. It is nil if there is no <noscript>, or scripting is on.
	fork *head
}

// begin prepares an empty head for a page.
func (h *head) begin(r io.Reader) {
	h.r, h.kept = r, h.small.kept[:0]
	for i := range h.values {
		h.values[i] = h.small.values[i][:0]
	}
}

// scan reads up to the end of the head. It returns nil at the end of the head or
// of the page.
func (h *head) scan() error {
	for ended := false; !ended && h.err == nil; {
		ended = h.token()
	}
	if h.err == io.EOF {
		return nil
	}
	return h.err
}

// token reads a token and reports whether it ends the head. It does so as soon as
// the first bytes of the token show it, since the token may be long.
func (h *head) token() (ended bool) {
	switch c := h.peek(); {
	case c == '<':
		h.used()
		return h.markup()
	case h.mode == inTemplate:
		h.skipTo('<')
	case isSpace(c):
		h.skipSpace()
	case c == '&':
		return h.reference()
	default:
		return true
	}
	return false
}

// markup handles a token after its "<" (13.2.5.6).
func (h *head) markup() (ended bool) {
	switch c := h.peek(); {
	case isLetter(c):
		return h.startTag()
	case c == '/':
		h.used()
		return h.endTag()
	case c == '!':
		h.used()
		h.declaration(h.template.foreign())
	case c == '?':
		h.skipPast('>')
	default:
		return h.mode != inTemplate // "< meta" is text
	}
	return false
}

// reference reads a character reference and reports whether it ends the head. A
// reference to white space does not.
func (h *head) reference() (ended bool) {
	h.used()
	b := []byte{'&'}
	h.readTo(referenceEnd, &b)
	if h.peek() == ';' {
		h.used()
		b = append(b, ';')
	}
	return strings.Trim(html.UnescapeString(string(b)), " \t\n\f\r") != ""
}

// referenceEnd returns the index of the first byte after a reference without its semicolon.
func referenceEnd(b []byte) int {
	return slices.IndexFunc(b, func(c byte) bool { return !isLetter(c) && (c < '0' || c > '9') && c != '#' })
}

// startTag handles a start tag and reports whether it ends the head.
func (h *head) startTag() (ended bool) {
	name := h.name()
	if h.mode != inTemplate {
		if endsHead(name, h.mode) {
			return true
		}
		if h.mode == inHeadNoscript && !staysInNoscript(name) || h.mode == beforeHead && name != atom.Html {
			h.mode = inHead
		}
		switch name {
		case atom.Meta:
			h.meta()
			return false
		case atom.Link:
			h.link()
			return false
		}
	}
	selfClosing := h.attributes(nil)
	if h.err != nil {
		return false
	}
	if h.mode == inTemplate && !h.template.start(name, selfClosing) {
		return false
	}
	switch name {
	case atom.Noscript:
		h.noscript()
	case atom.Script, atom.Style, atom.Title, atom.Textarea, atom.Iframe, atom.Noembed, atom.Noframes, atom.Xmp:
		h.rawText(name)
	case atom.Template:
		if h.mode != inTemplate {
			h.resume, h.mode = h.mode, inTemplate
			h.template.push(htmlTemplate)
		}
	}
	return name == atom.Plaintext // which has no end
}

// meta keeps a meta with a name and content. It also keeps content without a name
// that is not UTF-8, which tells the encoding of a page that does not declare it.
func (h *head) meta() {
	has := h.readValues("name", "content")
	if h.err == nil && (has[0] && has[1] || !utf8.Valid(h.values[1])) {
		h.kept = h.appendTag(h.kept, "meta", "name", "content")
	}
}

// readValues reads the rest of a tag. Values has the values of these attributes then, as written, and the result says which
// of them there are. Of two attributes with one name the first counts.
func (h *head) readValues(names ...string) (has [3]bool) {
	for i := range h.values {
		h.values[i] = h.values[i][:0]
	}
	h.attributes(func(attr []byte) *[]byte {
		for i, name := range names {
			if !has[i] && bytes.EqualFold(attr, []byte(name)) {
				has[i] = true
				return &h.values[i]
			}
		}
		return nil
	})
	return has
}

// appendTag appends a tag with the values of these attributes to a reduced page.
func (h *head) appendTag(b []byte, tag string, names ...string) []byte {
	b = append(append(b, '<'), tag...)
	for i, name := range names {
		b = append(append(append(b, ' '), name...), '=')
		b = appendValue(b, h.values[i])
	}
	return append(b, '>')
}

// appendValue appends the value of an attribute, in double quotes if it has none. A
// value with both kinds of quotes was written without, and can be again.
func appendValue(b, value []byte) []byte {
	quote := `"`
	if bytes.IndexByte(value, '"') >= 0 {
		quote = "'"
		if bytes.IndexByte(value, '\'') >= 0 {
			quote = ""
		}
	}
	b = append(b, quote...)
	b = append(b, value...)
	return append(b, quote...)
}

// endsHead reports whether a start tag ends the head. All do but the elements that
// the standard lists for the mode.
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

// staysInNoscript reports whether a start tag in a head's <noscript> leaves the
// <noscript> open. Any other closes it first.
func staysInNoscript(name atom.Atom) bool {
	switch name {
	case atom.Basefont, atom.Bgsound, atom.Link, atom.Meta, atom.Noframes, atom.Style,
		atom.Html, atom.Head, atom.Noscript:
		return true
	}
	return false
}

// noscript handles the start tag of a <noscript>.
func (h *head) noscript() {
	if h.scripting {
		h.rawText(atom.Noscript)
		return
	}
	h.forkHere()
	if h.mode != inTemplate {
		h.mode = inHeadNoscript
	}
}

// forkHere starts a second reader at this start tag, for reading with scripting
// on, unless there is one.
func (h *head) forkHere() {
	if h.fork != nil {
		return
	}
	again := bytes.NewBufferString("<noscript>")
	again.Write(h.rest())
	h.fork = &head{
		lexer: lexer{r: io.MultiReader(again, h.r)}, scripting: true,
		mode: h.mode, resume: h.resume, template: template{slices.Clone(h.template.stack)}, kept: slices.Clone(h.kept), keptLinks: slices.Clone(h.keptLinks),
	}
	h.r = io.TeeReader(h.r, again)
}

// endTag handles an end tag after its "</", and reports whether it
// ends the head.
func (h *head) endTag() (ended bool) {
	if !isLetter(h.peek()) {
		h.skipPast('>') // 13.2.5.7
		return false
	}
	name := h.name()
	h.attributes(nil)
	if h.err != nil {
		return false
	}
	if h.mode == inTemplate {
		h.template.end(name)
		if !h.template.open() {
			h.mode = h.resume
		}
		return false
	}
	switch name {
	case atom.Body, atom.Html, atom.Br:
		// In a <noscript>, only </br> ends the head and the others are ignored.
		return h.mode != inHeadNoscript || name == atom.Br
	case atom.Head:
		if h.mode != inHeadNoscript {
			h.mode = afterHead // elements of the head may still follow
		}
	case atom.Noscript:
		if h.mode == inHeadNoscript {
			h.mode = inHead
		}
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func endsTagName(c byte) bool {
	return isSpace(c) || c == '/' || c == '>'
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'
}
