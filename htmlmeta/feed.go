package htmlmeta

import (
	"bytes"
	"io"

	"golang.org/x/net/html"
)

// A feed gives a page to the tokenizer, but not beyond the head.
//
// The tokenizer returns a token only when it has all of it: text up to the
// next "<", a tag up to its ">". For the text after a head that may take until
// the page ends. So before the tokenizer may wait for more, the feed looks at
// what it has of the token; if that ends the head already, the page is
// over for it.
type feed struct {
	r       io.Reader
	look    []byte // the token's beginning without white space
	looking bool
	stopped bool
	cut     bool // reading failed: the last token may be half of one
	size    int  // bytes of the token and what is buffered after it
	over    func(look []byte) bool
	buf     [64]byte

	text    *rawText // to be dropped
	pending [][]byte // to be read before r, the last first
}

// begin is told what the tokenizer has left before it reads a token, and
// whether the token may end the head.
func (f *feed) begin(buffered []byte, looking bool) {
	f.look = f.buf[:0]
	f.looking = looking
	f.size = len(buffered)
	f.see(buffered)
}

func (f *feed) see(b []byte) {
	if !f.looking || len(f.look) == len(f.buf) {
		return
	}
	if len(f.look) == 0 {
		i := 0
		for i < len(b) && isSpace(b[i]) {
			i++
		}
		b = b[i:]
	}
	f.look = append(f.look, b[:min(len(b), len(f.buf)-len(f.look))]...)
}

// done reports whether what is known of the token ends the head.
func (f *feed) done() bool {
	if f.looking && len(f.look) > 0 && f.over(f.look) {
		f.stopped = true
	}
	return f.stopped
}

// skip makes the feed drop a raw text that begins with buffered, which a
// tokenizer has left that will not be used any more.
func (f *feed) skip(t *rawText, buffered []byte) {
	f.text = t
	f.push(f.afterText(buffered))
}

// afterText returns what of b follows the name of the text's end tag.
func (f *feed) afterText(b []byte) []byte {
	i, ok := f.text.end(b)
	if !ok {
		return nil
	}
	return b[i:]
}

// push ends the raw text if rest follows it.
func (f *feed) push(rest []byte) {
	if rest == nil {
		return
	}
	f.pending = append(f.pending, rest, []byte("</"+f.text.name))
	f.text = nil
}

func (f *feed) Read(p []byte) (int, error) {
	for f.text != nil {
		if len(f.pending) > 0 {
			f.push(f.afterText(f.pop()))
			continue
		}
		n, err := f.r.Read(p)
		f.push(bytes.Clone(f.afterText(p[:n])))
		if f.text != nil && err != nil {
			return 0, err
		}
	}
	if f.done() {
		return 0, io.EOF
	}
	n, err := f.next(p)
	f.cut = err != nil && err != io.EOF
	f.size += n
	f.see(p[:n])
	return n, err
}

func (f *feed) pop() []byte {
	last := len(f.pending) - 1
	b := f.pending[last]
	f.pending = f.pending[:last]
	return b
}

// For each read the tokenizer moves the token it has so far. A token that is
// already large is read in larger steps, or one that drips in by the byte
// would cost the square of its size.
const (
	largeToken = 16 << 10
	largeStep  = 4 << 10
)

func (f *feed) next(p []byte) (int, error) {
	for len(f.pending) > 0 {
		b := f.pop()
		n := copy(p, b)
		if n < len(b) {
			f.pending = append(f.pending, b[n:])
		}
		if n > 0 {
			return n, nil
		}
	}
	if f.size < largeToken {
		return f.r.Read(p)
	}
	n, err := io.ReadAtLeast(f.r, p, min(len(p), largeStep))
	if err == io.ErrUnexpectedEOF {
		err = nil // there will be io.EOF again
	}
	return n, err
}

// over reports whether the beginning of a token is enough to know that it ends
// the head. It may say no and leave it to the whole token.
func (h *head) over(look []byte) bool {
	switch look[0] {
	case '&':
		// A reference to white space is white space.
		end := bytes.IndexByte(look, ';')
		return end > 0 && !isSpace(html.UnescapeString(string(look[:end+1]))[0])
	case '<':
	default:
		return true
	}
	if len(look) == 1 {
		return false
	}
	switch c := look[1]; {
	case c == '!' || c == '?' || c == '/':
		return false
	case c|0x20 < 'a' || c|0x20 > 'z':
		return true // "< meta" is text
	}
	for i, c := range look {
		if !endsTagName(c) || i < 2 {
			continue
		}
		return endsHead(tagName(look[1:i+1]), h.mode)
	}
	return false
}
