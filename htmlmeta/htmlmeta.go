// Package htmlmeta reads the named <meta> elements of a page's head, and no
// more of the page than the head can reach.
//
// It knows nothing of what the names mean.
package htmlmeta

import (
	"bytes"
	"io"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// A Meta is one <meta name content> of a head.
type Meta struct {
	Name    string // white space around it removed
	Content string // as written, character references decoded
}

// Options says how to read a body.
type Options struct {
	ContentType     string // the field's value; "" is text/html
	ContentEncoding string // the field's value, lines joined by commas
	MaxBytes        int    // of the decoded body; 0 is DefaultMaxBytes
}

// DefaultMaxBytes bounds the head where Options doesn't.
const DefaultMaxBytes = 512 << 10

// A Result is what Scan found.
type Result struct {
	Metas []Meta

	// Complete is set if the head was read to its end, so that no meta in it
	// can have been missed.
	Complete bool

	// Why says what kept Scan from the end of the head: "limit", "timeout" or
	// "encoding"; "" if the error that Scan returned says it.
	Why string

	// Bytes counts the decoded bytes that were read.
	Bytes int64
}

// Wanted reports whether a body of this type has a head to scan.
func Wanted(contentType string) bool {
	switch mediaType(contentType) {
	case "text/html", "application/xhtml+xml":
		return true
	}
	return false
}

func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// Scan reads a page from r and returns the metas of its head.
func Scan(r io.Reader, o Options) (Result, error) {
	b, err := io.ReadAll(io.LimitReader(r, DefaultMaxBytes))
	if err != nil {
		return Result{}, err
	}
	e, _, _ := charset.DetermineEncoding(b, o.ContentType)
	if d, err := e.NewDecoder().Bytes(b); err == nil {
		b = d
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	res := Result{Complete: true, Bytes: int64(len(b))}
	for _, scripting := range []bool{true, false} {
		n, err := html.ParseWithOptions(bytes.NewReader(b), html.ParseOptionEnableScripting(scripting))
		if err != nil {
			return res, nil
		}
		goquery.NewDocumentFromNode(n).Find("head > meta, head > noscript > meta").Each(func(_ int, s *goquery.Selection) {
			name, _ := s.Attr("name")
			content, _ := s.Attr("content")
			if name != "" {
				res.Metas = append(res.Metas, Meta{strings.TrimSpace(name), content})
			}
		})
	}
	return res, nil
}
