package htmlmeta

import "io"

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
	over    func(look []byte) bool
	buf     [64]byte
}

// begin is told what the tokenizer has left before it reads a token, and
// whether the token may end the head.
func (f *feed) begin(buffered []byte, looking bool) {
	f.look = f.buf[:0]
	f.looking = looking
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

func (f *feed) Read(p []byte) (int, error) {
	if f.done() {
		return 0, io.EOF
	}
	n, err := f.r.Read(p)
	f.see(p[:n])
	return n, err
}

// over reports whether the beginning of a token is enough to know that it ends
// the head. It may say no and leave it to the whole token.
func (h *head) over(look []byte) bool {
	switch look[0] {
	case '&':
		return false // may be a reference to white space
	default:
		return true
	case '<':
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
