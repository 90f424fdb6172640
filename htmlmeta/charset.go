package htmlmeta

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// A page is the decoded body in an encoding whose ASCII bytes are ASCII, all
// that finding the head needs. Only two of the encodings of the web lack that:
// UTF-16, and ISO-2022-JP once it has shifted. Those are converted while
// reading; of the others only the metas are, at the end. So nothing but
// a page that shifts has to wait for the 1,024 bytes in which it may declare its
// encoding, as charset.NewReader does.
//
// A byte order mark is dropped: to a parser it would be text, which ends the head.
//
// It relies on limited to give the same error again when read after one.
type page struct {
	r           io.Reader
	contentType string
	start       []byte // the first bytes, for the prescan; settled with shifts
	utf8        bool   // the bytes are UTF-8 already
	started     bool
	shifts      bool // escapes have been looked for and matter no more
}

// prescanned is how many bytes may declare the encoding (WHATWG HTML, section
// 13.2.3.2).
const prescanned = 1024

func (p *page) Read(b []byte) (int, error) {
	if !p.started {
		p.started = true
		return p.begin(b)
	}
	n, err := p.r.Read(b)
	if plain := p.look(b, n); plain < n {
		return plain, nil // the rest is to come, and then the error again
	}
	return n, err
}

// look looks at the n bytes that were read into b, and returns how many of them
// stay as they are.
func (p *page) look(b []byte, n int) int {
	if p.utf8 || p.shifts {
		return n
	}
	if room := prescanned - len(p.start); room > 0 {
		p.start = append(p.start, b[:min(n, room)]...)
	}
	i := bytes.IndexByte(b[:n], 0x1b)
	if i < 0 {
		return n
	}
	p.shifts = true
	if _, _, told := charset.DetermineEncoding(nil, p.contentType); !told {
		if err := p.readStart(); err != nil {
			p.r = failed{err} // what the rest means is not known yet
			return i
		}
	}
	if p.name() == "iso-2022-jp" {
		p.convert(b[i:n], japanese.ISO2022JP)
		return i
	}
	return n
}

// readStart waits for the bytes that may declare the encoding: a title may shift
// before them. Hardly a page has an escape and another encoding.
func (p *page) readStart() error {
	more := make([]byte, prescanned-len(p.start))
	n, err := io.ReadFull(p.r, more) // the error will be there again
	p.start = append(p.start, more[:n]...)
	p.r = io.MultiReader(bytes.NewReader(more[:n]), p.r)
	if err == io.EOF || err == io.ErrUnexpectedEOF || errors.Is(err, errLimit) {
		return nil
	}
	return err
}

type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// begin looks at the first four bytes for a byte order mark or UTF-16.
func (p *page) begin(b []byte) (int, error) {
	n, err := io.ReadAtLeast(p.r, b, 4)
	if n == 0 {
		return 0, err
	}
	// A read that fails after some bytes will fail again.
	switch h := b[:n]; {
	case bytes.HasPrefix(h, []byte("\xef\xbb\xbf")):
		p.utf8 = true
		return copy(b, h[3:]), nil
	case bytes.HasPrefix(h, []byte("\xff\xfe")):
		p.convert(h[2:], unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM))
	case bytes.HasPrefix(h, []byte("\xfe\xff")):
		p.convert(h[2:], unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM))

	// UTF-16 without a mark shows in its zeros. A declaration is neither
	// needed, since no other page begins so, nor trusted: a page that is said
	// to be UTF-16 and isn't would lose its head.
	case n >= 4 && h[0] != 0 && h[1] == 0 && h[2] != 0 && h[3] == 0:
		p.convert(h, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM))
	case n >= 4 && h[0] == 0 && h[1] != 0 && h[2] == 0 && h[3] != 0:
		p.convert(h, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM))
	default:
		return p.look(b, n), nil
	}
	return 0, nil
}

// convert makes UTF-8 of what is to come: of begun, and of what follows it.
func (p *page) convert(begun []byte, e encoding.Encoding) {
	p.r = transform.NewReader(io.MultiReader(bytes.NewReader(bytes.Clone(begun)), p.r), e.NewDecoder())
	p.utf8 = true
}

// xmlEncoding matches what an XML declaration says (XML 1.0, section 4.3.3).
var xmlEncoding = regexp.MustCompile(`^\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']`)

// encoding returns the page's encoding by Content-Type, declaration, or guess.
func (p *page) encoding() (e encoding.Encoding, name string, certain bool) {
	e, name, certain = charset.DetermineEncoding(p.start, p.contentType)
	if !certain && name == "windows-1252" {
		if m := xmlEncoding.FindSubmatch(p.start); m != nil {
			if declared, n := charset.Lookup(string(m[1])); declared != nil {
				return declared, n, true
			}
		}
	}
	return e, name, certain
}

func (p *page) name() string {
	_, name, _ := p.encoding()
	return name
}

// text converts a piece of the page to UTF-8.
func (p *page) text(b []byte) []byte {
	if isASCII(b) {
		return b
	}
	if p.utf8 {
		return bytes.ToValidUTF8(b, []byte("\ufffd"))
	}
	e, name, certain := p.encoding()
	switch {
	case name == "utf-8", name == "replacement", len(name) > 6 && name[:6] == "utf-16":
		// The replacement encoding would leave nothing of the page. It guards
		// readers from being misled by what they see, which can't happen here.
		return bytes.ToValidUTF8(b, []byte("\ufffd"))
	case !certain && name == "windows-1252" && utf8.Valid(b):
		return b // the guess saw only the first bytes
	}
	if u, err := e.NewDecoder().Bytes(b); err == nil {
		return u
	}
	return bytes.ToValidUTF8(b, []byte("\ufffd"))
}

func isASCII(b []byte) bool { return firstHigh(b) < 0 }

// firstHigh returns the index of the first byte that is not ASCII, or -1.
func firstHigh(b []byte) int {
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return i
		}
	}
	return -1
}

// An xmlText is a page for a reader of XML, which refuses what is not UTF-8. It
// converts from the first byte on that is not ASCII; by then the declaration,
// which is ASCII, has been read.
type xmlText struct {
	r       io.Reader // of p
	p       *page
	decided bool
}

func (x *xmlText) Read(b []byte) (int, error) {
	n, err := x.r.Read(b)
	if x.decided {
		return n, err
	}
	i := firstHigh(b[:n])
	if i < 0 {
		return n, err
	}
	x.decided = true
	rest := io.MultiReader(bytes.NewReader(bytes.Clone(b[i:n])), x.r)
	x.r = transform.NewReader(rest, x.p.xmlDecoder())
	if i == 0 {
		return x.r.Read(b)
	}
	return i, nil
}

// xmlDecoder returns what makes UTF-8 of the page, also of broken UTF-8.
// Without a declaration XML is UTF-8 (XML 1.0, section 4.3.3).
func (p *page) xmlDecoder() transform.Transformer {
	e, name, certain := p.encoding()
	if p.utf8 || name == "replacement" || !certain && name == "windows-1252" {
		return unicode.UTF8.NewDecoder()
	}
	if e == encoding.Nop {
		return unicode.UTF8.NewDecoder()
	}
	return e.NewDecoder()
}
