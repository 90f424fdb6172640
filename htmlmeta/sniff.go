package htmlmeta

import (
	"io"
	"net/http"
	"strings"
)

// A kind is what a Content-Type says about a body.
type kind int

// The kinds. If Content-Type has several types, the last kind in this order counts, see [ContentType].
const (
	untyped kind = iota // there is no valid type
	other
	unknown // the type says that it is not known
	isXML   // XHTML if the root element is html
	isXHTML
	isHTML
)

// kindOf returns what a media type says.
func kindOf(mediaType string) kind {
	main, sub, _ := strings.Cut(mediaType, "/")
	switch {
	case mediaType == "text/html":
		return isHTML
	case mediaType == "application/xhtml+xml":
		return isXHTML
	case mediaType == "text/xml", mediaType == "application/xml", isToken(main) && isToken(sub) && strings.HasSuffix(sub, "+xml"):
		return isXML
	case mediaType == "unknown/unknown", mediaType == "application/unknown":
		return unknown
	case mediaType == "*/*", !isToken(main), !isToken(sub):
		return untyped
	}
	return other
}

// isToken reports whether s is a token (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// sniff returns what the beginning of a body shows, where browsers look at it (WHATWG MIME Sniffing, section 7.1):
// isHTML, isXML, other for the known form of another type, or unknown.
func (s *scanner) sniff() (kind, error) {
	start, err := s.page.in.Peek(512) // as much as DetectContentType reads
	t, _, _ := strings.Cut(http.DetectContentType(start), ";")
	switch {
	case t == "text/html", len(start) == 0 && err == io.EOF: // no page at all states nothing
		return isHTML, nil
	case err != nil && err != io.EOF:
		return unknown, err
	case t == "text/xml":
		return isXML, nil
	case t == "text/plain", t == "application/octet-stream":
		return unknown, nil
	}
	return other, nil
}
