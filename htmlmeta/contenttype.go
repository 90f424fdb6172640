package htmlmeta

import (
	"strings"

	"golang.org/x/net/http/httpguts"
)

// A kind is what a Content-Type says about a body. If it has several types, the last kind in this order counts.
type kind int

const (
	untyped kind = iota // no valid type
	other
	unknown // the type says that it is not known
	isPage  // HTML or XHTML
)

// NoType is the Content-Type of a response that has no valid one (WHATWG MIME Sniffing, section 7).
const NoType = "unknown/unknown"

// kindOf returns what a media type says.
func kindOf(mediaType string) kind {
	main, sub, _ := strings.Cut(mediaType, "/")
	switch {
	case mediaType == "text/html", mediaType == "application/xhtml+xml":
		return isPage
	case mediaType == NoType, mediaType == "application/unknown":
		return unknown
	case mediaType == "*/*", !httpguts.ValidHeaderFieldName(main), !httpguts.ValidHeaderFieldName(sub):
		return untyped
	}
	return other
}

// MayBePage reports whether browsers may take a body of this Content-Type, which [ContentType] has returned, for HTML
// or XHTML. If the type is not known, it depends on the body.
func MayBePage(contentType string) bool { return kindOf(MediaType(contentType)) >= unknown }

// ContentType returns the type in the lines of a Content-Type field. Of several, also joined by commas, the one that is
// most like a page's counts, since readers disagree. If none is valid it returns NoType.
func ContentType(lines []string) string {
	best, found := NoType, untyped
	for line := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		if k := kindOf(MediaType(line)); k > found {
			best, found = strings.TrimSpace(line), k
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
