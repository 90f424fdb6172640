package htmlmeta

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// A page reads the decoded body in an encoding in which ASCII bytes are ASCII,
// which is all that finding the head needs. Only two encodings of the web differ:
// UTF-16, and ISO-2022-JP after an escape. Those are converted while reading. In
// all others only the metas are converted, at the end. So only a page with an
// escape has to wait for the 1,024 bytes that may declare its encoding, as
// charset.NewReader does for every page.
//
// A reader of XML accepts UTF-8 only. For it the page is converted from the first byte on
// that is not ASCII, by which the declaration of XML has been read.
//
// A byte order mark is dropped: a parser would take it for text, which ends the
// head.
//
// It relies on the errors of limited, which persist.
type page struct {
	in          *bufio.Reader
	contentType string
	xml         bool
	begun       bool
	start       []byte    // the first bytes, for the prescan
	settled     bool      // start is complete, and escapes have no meaning
	utf8        io.Reader // the page in UTF-8, if it is converted or known to be that
}

// prescanned is how many bytes may declare the encoding (WHATWG HTML, section
// 13.2.3.2).
const prescanned = 1024

func (p *page) Read(b []byte) (int, error) {
	if !p.begun {
		p.begun = true
		p.begin()
	}
	switch {
	case p.utf8 != nil:
		return p.utf8.Read(b)
	case p.settled:
		return p.in.Read(b)
	}
	if _, err := p.in.Peek(1); err != nil {
		return 0, err
	}
	n := min(len(b), p.in.Buffered())
	here, _ := p.in.Peek(n)
	switch i := p.special(here); {
	case i == 0:
		if err := p.settle(); err != nil {
			return 0, err
		}
		return p.Read(b)
	case i > 0:
		n = i
	}
	p.start = append(p.start, here[:min(n, prescanned-len(p.start))]...)
	return p.in.Read(b[:n])
}

// begin looks at the first four bytes for a byte order mark or UTF-16.
//
// UTF-16 without a mark shows in its zeros. A declaration of UTF-16 is not needed, since
// no other page begins like this, and not trusted: a page that claims it wrongly would
// lose its head.
func (p *page) begin() {
	h, _ := p.in.Peek(4) // an error will be there again
	zeros := func(even, odd bool) bool {
		return len(h) == 4 && (h[0] == 0) == even && (h[1] == 0) == odd && (h[2] == 0) == even && (h[3] == 0) == odd
	}
	switch {
	case bytes.HasPrefix(h, []byte("\xef\xbb\xbf")):
		p.in.Discard(3)
		p.utf8 = p.in
		if p.xml {
			p.convert(unicode.UTF8) // repairs it
		}
	case bytes.HasPrefix(h, []byte("\xff\xfe")), zeros(false, true):
		p.convert(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM))
	case bytes.HasPrefix(h, []byte("\xfe\xff")), zeros(true, false):
		p.convert(unicode.UTF16(unicode.BigEndian, unicode.UseBOM))
	}
}

// special returns the index of the first byte that means different things in different encodings, or -1.
func (p *page) special(b []byte) int {
	const escape = 0x1b
	if !p.xml {
		return bytes.IndexByte(b, escape)
	}
	return slices.IndexFunc(b, func(c byte) bool { return c == escape || c >= utf8.RuneSelf })
}

// settle finds out what the special byte means that comes next. Unless Content-Type
// names the encoding, HTML has to wait for the bytes that may declare it.
func (p *page) settle() error {
	if _, _, certain := charset.DetermineEncoding(nil, p.contentType); !certain && !p.xml {
		more, err := p.in.Peek(prescanned - len(p.start))
		if err != nil && err != io.EOF && !errors.Is(err, errLimit) {
			return err
		}
		p.start = append(p.start, more...)
	}
	p.settled = true
	e, name, certain := p.encoding()
	switch {
	case p.xml && (name == "replacement" || name == "utf-8" || !certain && name == "windows-1252"):
		p.convert(unicode.UTF8) // unless it is declared otherwise (XML 1.0, section 4.3.3)
	case p.xml || name == "iso-2022-jp":
		p.convert(e)
	}
	return nil
}

// convert reads the rest of the page as UTF-8.
func (p *page) convert(e encoding.Encoding) {
	p.utf8 = transform.NewReader(p.in, e.NewDecoder())
}

// xmlEncoding matches an XML declaration of the encoding (XML 1.0, section 4.3.3).
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

// text converts a piece of the page to UTF-8.
func (p *page) text(b []byte) []byte {
	if firstHigh(b) < 0 {
		return b
	}
	if p.utf8 == nil {
		e, name, certain := p.encoding()
		// The replacement encoding would leave nothing of the page. It guards
		// readers from being misled by what they see, which can't happen here.
		unused := name == "replacement" || strings.HasPrefix(name, "utf-")
		guessed := !certain && name == "windows-1252" && utf8.Valid(b) // from the first bytes only
		if u, err := e.NewDecoder().Bytes(b); err == nil && !unused && !guessed {
			return u
		}
	}
	return bytes.ToValidUTF8(b, []byte("\ufffd"))
}

// firstHigh returns the index of the first byte that is not ASCII, or -1.
func firstHigh(b []byte) int {
	return bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf })
}
