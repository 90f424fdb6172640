// Package htmlmeta reads the named <meta> elements of a page's head, and its <link>
// elements to licences. It stops where the head ends.
//
// Use [Scan]: it takes a response body as received, with its content codings
// and in any encoding of the web. [MayBePage] reports whether the body of a Content-Type may
// be HTML. What a meta means is not known here; package robotstag knows
// the ones for robots.
package htmlmeta

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"robotsgate/internal/coding"
)

// A Meta is one <meta name content> of a head.
type Meta struct {
	Name    string // without surrounding white space
	Content string // character references decoded, otherwise as written
}

// A Link is one <link> of a head to a licence: among its relations is "license". Other links,
// such as those to style sheets, are not kept: nearly every page has many, and nothing reads them.
type Link struct {
	Rel  string // with a token "license", in any case; character references decoded, otherwise as written
	Type string // the same; "" if there is none
	Href string // without surrounding white space
}

// Options describe a body. The zero value is for a text/html page without
// content coding.
type Options struct {
	ContentType     string // as ContentType returns it; empty: text/html
	ContentEncoding string // value of the header field, several lines joined by commas
	MaxBytes        int    // limit on the decoded bytes read; 0: DefaultMaxBytes
}

// DefaultMaxBytes is the limit for Options without MaxBytes.
const DefaultMaxBytes = 512 << 10

// A Result is what Scan found.
type Result struct {
	Metas []Meta
	Links []Link // to licences

	// Complete is true if the head was read to its end, so that no meta or link in it
	// can be missing.
	Complete bool

	// Why says what kept Scan from the end of the head: "limit", "encoding" or,
	// if the reader's error was a timeout, "timeout". It is "type" if the body is no page.
	Why string

	// Unknown is true if Why is "type", and neither Content-Type nor the body's beginning show what the body is: another
	// reader may take it for a page.
	Unknown bool

	// Bytes is the number of decoded bytes that were read.
	Bytes int64
}

// MayBePage reports whether browsers may take a body of this Content-Type, which [ContentType] has returned, for HTML
// or XHTML. It depends on the body for XML, and if the type is not known.
func MayBePage(contentType string) bool { return kindOf(MediaType(contentType)) >= unknown }

// NoType is the Content-Type of a response that has no valid one (WHATWG MIME Sniffing, section 7).
const NoType = "unknown/unknown"

// ContentType returns the type in the lines of a Content-Type field that counts, with all that follows it in its line. If
// there are several, also joined by commas, readers disagree: the one that is most like a page's counts. It returns
// NoType if none is valid.
func ContentType(lines []string) string {
	best, found := NoType, untyped
	for _, line := range lines {
		for {
			if k := kindOf(MediaType(line)); k > found {
				best, found = strings.TrimSpace(line), k
			}
			_, rest, more := strings.Cut(line, ",")
			if !more {
				break
			}
			line = rest
		}
	}
	return best
}

// MediaType returns the media type of a Content-Type in small letters, the first one if proxies have joined several lines.
func MediaType(contentType string) string {
	if i := strings.IndexAny(contentType, ";,"); i >= 0 {
		contentType = contentType[:i]
	}
	return strings.ToLower(strings.TrimSpace(contentType))
}

// Scan reads a page from r and returns the named metas and the links to licences that the
// HTML standard puts into its head.
//
// It stops reading as soon as the bytes read show that the head has ended. When
// r blocks, Scan blocks only if it needs more bytes to know that. After an error of
// r it returns that error, and what was found before it.
func Scan(r io.Reader, o Options) (Result, error) {
	s := scanners.Get().(*scanner)
	res, err := s.scan(r, o)
	s.reset()
	scanners.Put(s) // not after a panic
	return res, err
}

// A scanner is the state of one Scan. Scanners are reused, since making their
// buffers costs as much as a scan.
type scanner struct {
	wire    wire
	limited limited
	page    page
	head    head
}

var scanners = sync.Pool{New: func() any {
	return &scanner{page: page{in: bufio.NewReader(nil), start: make([]byte, 0, prescanned)}}
}}

// reset drops everything but the buffers of a fixed size.
func (s *scanner) reset() {
	s.page.in.Reset(nil)
	*s = scanner{page: page{in: s.page.in, start: s.page.start[:0]}}
}

func (s *scanner) scan(r io.Reader, o Options) (res Result, err error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	s.wire.r = r
	s.limited.r, s.limited.left = &s.wire, o.MaxBytes
	if o.ContentEncoding != "" {
		body, err := coding.NewReader(&s.wire, []string{o.ContentEncoding})
		if err != nil {
			return Result{Why: "encoding"}, nil
		}
		defer body.Close()
		s.limited.r = body
	}
	s.page.in.Reset(&s.limited)
	s.page.contentType = o.ContentType
	k := isHTML
	if o.ContentType != "" {
		k = kindOf(MediaType(o.ContentType))
	}
	if k == unknown {
		k, err = s.sniff()
	}
	switch {
	case err != nil:
	case k == isHTML:
		res.Metas, res.Links, err = scanHTML(&s.page, &s.head, &s.page)
	case k == isXHTML, k == isXML:
		res.Metas, res.Links, err = scanXHTML(&s.head, &s.page, k == isXML)
	default:
		err = errNoPage
	}
	res.Bytes = int64(o.MaxBytes - s.limited.left)
	switch {
	case err == nil:
		res.Complete = true
	case err == errNoPage:
		res.Why, res.Unknown = "type", k == unknown
	case errors.Is(err, errLimit):
		res.Why = "limit"
	case s.wire.err != nil:
		if t, ok := errors.AsType[timeoutError](s.wire.err); ok && t.Timeout() {
			res.Why = "timeout"
		}
		return res, s.wire.err
	default:
		res.Why = "encoding"
	}
	return res, nil
}

// errNoPage ends the scan of a body that is not HTML or XHTML.
var errNoPage = errors.New("not a page")

// A timeoutError is an error that may be a timeout, such as context.DeadlineExceeded.
type timeoutError interface {
	error
	Timeout() bool
}

// union returns the elements of both lists, each once.
func union[E Meta | Link](a, b []E) []E {
	if len(a)+len(b) == 0 {
		return nil
	}
	seen := make(map[E]bool)
	return slices.DeleteFunc(slices.Concat(a, b), func(e E) bool {
		again := seen[e]
		seen[e] = true
		return again
	})
}
