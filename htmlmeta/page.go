package htmlmeta

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// errLimit ends a head that is longer than MaxBytes.
var errLimit = errors.New("the head is too long")

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A page is a body in an encoding in which ASCII bytes are ASCII, which is all that finding the head needs. Only UTF-16
// and ISO-2022-JP are converted while reading. Of other encodings only the tags that were cut are converted, at the
// end, so that no page has to wait for the bytes that may declare its encoding.
type page struct {
	Options
	wire    io.Reader
	wireErr error     // other than io.EOF: a decoder may report a broken connection as a broken stream
	decoded io.Reader // of wire
	read    int       // bytes of decoded
	start   []byte    // of decoded: the bytes that may declare the encoding (WHATWG HTML, section 13.2.3.2)
	in      io.Reader // what of decoded has not been used
	utf8    bool      // in has been converted
}

func (p *page) readWire(b []byte) (int, error) {
	n, err := p.wire.Read(b)
	if err != nil && err != io.EOF {
		p.wireErr = err
	}
	return n, err
}

// readDecoded reads the decoded body within its limits.
func (p *page) readDecoded(b []byte) (int, error) {
	left := p.MaxBytes - p.read
	n, err := p.decoded.Read(b[:min(len(b), left+1, 4<<10)]) // a page that is as long as the limit is complete
	if n > left {
		n, err = left, errLimit
	}
	p.read += n
	p.start = append(p.start, b[:min(n, 1024-len(p.start))]...)
	return n, err
}

// begin finds out what the body is, by its type or first bytes (WHATWG MIME Sniffing, section 7.1), and whether it has
// to be converted while reading. A byte order mark is dropped: a parser would take it for text, which ends the head.
// A declaration of UTF-16 is not trusted: without a mark UTF-16 shows in its zeros.
func (p *page) begin() kind {
	k, need := kindOf(MediaType(cmp.Or(p.ContentType, "text/html"))), 4
	if k == unknown {
		need = 512 // as much as DetectContentType reads
	}
	first, decoded := make([]byte, 1024), readerFunc(p.readDecoded)
	n, _ := io.ReadAtLeast(decoded, first, need) // decoded will return an error again
	if first = first[:n]; k == unknown {
		switch t, _, _ := strings.Cut(http.DetectContentType(first), ";"); {
		case t == "text/html", t == "text/xml", n == 0: // no page at all states nothing
			k = isPage
		case t != "text/plain" && t != "application/octet-stream":
			k = other
		}
	}
	p.in = io.MultiReader(bytes.NewReader(bytes.TrimPrefix(first, []byte("\xef\xbb\xbf"))), decoded)
	zeros := func(i int) bool { return n > 3 && first[i] == 0 && first[i+2] == 0 }
	e, name, _ := charset.DetermineEncoding(first, p.ContentType)
	switch {
	case bytes.HasPrefix(first, []byte("\xff\xfe")), zeros(1) && !zeros(0):
		e = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case bytes.HasPrefix(first, []byte("\xfe\xff")), zeros(0) && !zeros(1):
		e = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case name != "iso-2022-jp":
		return k
	}
	p.in, p.utf8 = transform.NewReader(p.in, e.NewDecoder()), true
	return k
}

// text converts tags of the page to UTF-8.
func (p *page) text(tags []byte) []byte {
	isASCII := func(b []byte) bool { return bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 }
	if p.utf8 || isASCII(tags) {
		return tags
	}
	e, name, certain := charset.DetermineEncoding(p.start, p.ContentType)
	guessed := !certain && name == "windows-1252" && isASCII(p.start) && utf8.Valid(tags)
	// The replacement encoding guards readers from being misled by what they see, and would leave nothing of the page.
	if text, err := e.NewDecoder().Bytes(tags); err == nil && !guessed && name != "replacement" && !strings.HasPrefix(name, "utf-") {
		return text
	}
	return bytes.ToValidUTF8(tags, []byte("\ufffd"))
}
