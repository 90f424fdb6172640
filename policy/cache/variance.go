package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// A variance says which of the variants of a URL a request selects (RFC 9110, 12.5.5). nil: there is one only.
type variance struct {
	Any    bool     // no request is known to select this variant
	Fields []string // otherwise, of the request, sorted
}

// maxVary bounds the fields of a Vary, and its length in bytes.
const maxVary = 512

// varianceOf reads the Vary of a response. A signature (RFC 9421) is another one for each request.
func varianceOf(h http.Header) *variance {
	lines := h["Vary"]
	if len(lines) == 0 {
		return nil
	}
	v := &variance{}
	size := 0
	for _, line := range lines {
		if size += len(line) + 1; size > maxVary {
			return &variance{Any: true}
		}
		for name := range strings.SplitSeq(line, ",") {
			switch name = textproto.CanonicalMIMEHeaderKey(strings.Trim(name, " \t")); name {
			case "":
			case "*", "Signature", "Signature-Input", "Signature-Agent":
				return &variance{Any: true}
			default:
				v.Fields = append(v.Fields, strings.Clone(name))
			}
		}
	}
	if len(v.Fields) == 0 {
		return nil
	}
	slices.Sort(v.Fields)
	v.Fields = slices.Compact(v.Fields)
	return v
}

// covers reports whether a response with the variance of other may belong to a variant of v: it depends on no further
// fields. A 304 or 206 may leave Vary out.
func (v *variance) covers(other *variance) bool {
	switch {
	case v != nil && v.Any, other != nil && other.Any:
		return false
	case other == nil:
		return true
	case v == nil:
		return false
	}
	return !slices.ContainsFunc(other.Fields, func(name string) bool { return !slices.Contains(v.Fields, name) })
}

// key returns the key of the variant that a request selects.
func (v *variance) key(url string, request http.Header) string {
	h := sha256.New()
	for _, name := range v.Fields {
		fmt.Fprintf(h, "%q %q\n", name, request[name])
	}
	return url + "\n" + hex.EncodeToString(h.Sum(nil)) // a URL has no line break
}

// cost estimates the memory that v holds, in bytes.
func (v *variance) cost() (bytes int) {
	if v == nil {
		return 0
	}
	for _, name := range v.Fields {
		bytes += 16 + len(name)
	}
	return 32 + bytes
}

// opaqueTag returns the ETag of a response without the mark of weakness (RFC 9110, 8.8.3): a server may mark
// the tag of an encoded answer as weak.
func opaqueTag(h http.Header) string { return strings.Clone(strings.TrimPrefix(h.Get("Etag"), "W/")) }
