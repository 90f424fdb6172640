package htmlmeta

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
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
// A byte order mark is dropped: a parser would take it for text, which ends the
// head.
//
// It relies on the errors of limited, which persist.
type page struct {
	in          *bufio.Reader
	contentType string
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
	switch i := bytes.IndexByte(here, 0x1b); {
	case i == 0:
		if err := p.escape(); err != nil {
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
	case bytes.HasPrefix(h, []byte("\xff\xfe")), zeros(false, true):
		p.convert(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM))
	case bytes.HasPrefix(h, []byte("\xfe\xff")), zeros(true, false):
		p.convert(unicode.UTF16(unicode.BigEndian, unicode.UseBOM))
	}
}

// escape settles what the escape that comes next means. Unless Content-Type
// names the encoding, it waits for the bytes that may declare it.
func (p *page) escape() error {
	if _, _, certain := charset.DetermineEncoding(nil, p.contentType); !certain {
		more, err := p.in.Peek(prescanned - len(p.start))
		if err != nil && err != io.EOF && !errors.Is(err, errLimit) {
			return err
		}
		p.start = append(p.start, more...)
	}
	p.settled = true
	if _, name, _ := p.encoding(); name == "iso-2022-jp" {
		p.convert(japanese.ISO2022JP)
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
	if e, name, certain := p.encoding(); p.utf8 == nil {
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

// An xmlText is a page for a reader of XML, which accepts UTF-8 only. It
// converts from the first byte on that is not ASCII. The XML declaration is
// ASCII, so it has been read by then.
type xmlText struct {
	r         io.Reader // of p
	p         *page
	converted bool
}

func (x *xmlText) Read(b []byte) (int, error) {
	n, err := x.r.Read(b)
	i := firstHigh(b[:n])
	if x.converted || i < 0 {
		return n, err
	}
	x.converted = true
	rest := io.MultiReader(bytes.NewReader(bytes.Clone(b[i:n])), x.r)
	x.r = transform.NewReader(rest, x.p.xmlDecoder())
	if i == 0 {
		return x.r.Read(b)
	}
	return i, nil
}

// xmlDecoder returns the decoder of the page as XML, which is UTF-8 unless it is
// declared otherwise (XML 1.0, section 4.3.3). Broken UTF-8 is repaired.
func (p *page) xmlDecoder() transform.Transformer {
	e, name, certain := p.encoding()
	if p.utf8 != nil || name == "replacement" || !certain && name == "windows-1252" || e == encoding.Nop {
		return unicode.UTF8.NewDecoder()
	}
	return e.NewDecoder()
}
