// Package htmlmeta reads the named <meta> elements of a page's head, and its <link> elements to licences. It stops
// where the head ends. What a meta means is not known here; package robotstag knows the ones for robots.
package htmlmeta

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"

	"robotsgate/internal/coding"
)

// A Meta is one <meta name content> of a head.
type Meta struct {
	Name    string // without surrounding white space
	Content string // character references decoded, otherwise as written
}

// A Link is one <link> of a head to a licence: among its relations is "license". Nothing reads other links.
type Link struct {
	Rel, Type string // character references decoded, otherwise as written; "" if there is none
	Href      string // without surrounding white space
}

// Options describe a body. The zero value is for a text/html page without content coding.
type Options struct {
	ContentType     string // as ContentType returns it; empty: text/html
	ContentEncoding string // value of the header field, several lines joined by commas
	MaxBytes        int    // limit on the decoded bytes read; 0: DefaultMaxBytes
}

// DefaultMaxBytes is the limit for Options without MaxBytes.
const DefaultMaxBytes = 512 << 10

// A Result is what Scan found.
type Result struct {
	Metas    []Meta
	Links    []Link // to licences
	Complete bool   // the head was read to its end, so that no meta or link in it can be missing
	Bytes    int64  // decoded bytes that were read

	// Why says what kept Scan from the end of the head: "limit", "encoding", "timeout" if that was the reader's error,
	// or "type" if the body is no page. Unknown is set if neither Content-Type nor the body's beginning show what it is:
	// another reader may take it for a page.
	Why     string
	Unknown bool
}

// Scan reads a page from r and returns the named metas and the links to licences that the HTML standard puts into its
// head. It stops at the token that ends the head, and blocks only while it needs more of r to find that. After an error
// of r it returns that error, and what was found before it.
func Scan(r io.Reader, o Options) (res Result, err error) {
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	p := &page{Options: o, wire: r}
	decoded, err := coding.NewReader(readerFunc(p.readWire), []string{o.ContentEncoding})
	if err != nil {
		return Result{Why: "encoding"}, nil
	}
	defer decoded.Close()
	p.decoded = decoded
	h := head{xhtml: MediaType(o.ContentType) == "application/xhtml+xml"}
	k := p.begin()
	if k == isPage {
		if err = h.scan(p.in); len(h.cut) > 0 { // no tree is built for nothing
			res.find(p.text(h.cut))
		}
	}
	res.Bytes = int64(p.read)
	switch {
	case k != isPage:
		res.Why, res.Unknown = "type", k == unknown
	case err == nil:
		res.Complete = true
	case errors.Is(err, errLimit):
		res.Why, err = "limit", nil
	case p.wireErr == nil:
		res.Why, err = "encoding", nil
	default:
		if err = p.wireErr; os.IsTimeout(err) {
			res.Why = "timeout"
		}
	}
	return res, err
}

// find adds the metas and links in the tags that were cut.
func (res *Result) find(cut []byte) {
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(cut))
	if err != nil {
		return // cannot be: no tag is in another
	}
	for _, tag := range doc.Children().Children().First().Children().EachIter() {
		name, content := strings.TrimSpace(tag.AttrOr("name", "")), tag.AttrOr("content", "")
		rel, href := tag.AttrOr("rel", ""), strings.TrimSpace(tag.AttrOr("href", ""))
		switch element := goquery.NodeName(tag); {
		case element == "meta" && name != "" && content != "":
			res.Metas = append(res.Metas, Meta{name, content})
		case element == "link" && slices.Contains(strings.Fields(strings.ToLower(rel)), "license") && href != "":
			res.Links = append(res.Links, Link{rel, tag.AttrOr("type", ""), href})
		}
	}
}
