package header

import (
	"mime"
	"slices"
	"strconv"
	"strings"
)

// forms are the media types of a refusal, the default first, each with the media ranges that
// include it, the most specific first.
var forms = []struct {
	mediaType string
	ranges    []string
}{
	{"application/problem+json", []string{"application/problem+json", "application/json", "application/*", "*/*"}},
	{"text/html", []string{"text/html", "text/*", "*/*"}},
	{"text/plain", []string{"text/plain", "text/*", "*/*"}},
}

// Negotiate returns the media type of a refusal for an Accept header (RFC 9110, section 12.5.1):
// the one with the greatest weight. If weights are equal, it is the one that the header names
// more specifically. Malformed media ranges count for nothing.
func Negotiate(accept []string) string {
	best := forms[0].mediaType
	if len(accept) == 0 || len(accept) == 1 && accept[0] == "*/*" {
		return best // as most crawlers have it
	}
	weights := map[string]float64{} // of media ranges
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		mediaRange, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if mediaRange == "*" { // of Java's HttpURLConnection
			mediaRange = "*/*"
		}
		weight := 1.0
		if q, ok := params["q"]; ok && err == nil {
			weight, err = strconv.ParseFloat(q, 64)
		}
		if _, doubled := weights[mediaRange]; err == nil && weight >= 0 && weight <= 1 && !doubled {
			weights[mediaRange] = weight
		}
	}
	bestWeight, bestSpecificity := 0.0, 0
	for _, form := range forms {
		i := slices.IndexFunc(form.ranges, func(r string) bool { _, named := weights[r]; return named })
		if i < 0 {
			continue
		}
		weight, specificity := weights[form.ranges[i]], len(form.ranges)-i
		if weight > bestWeight || weight > 0 && weight == bestWeight && specificity > bestSpecificity {
			best, bestWeight, bestSpecificity = form.mediaType, weight, specificity
		}
	}
	return best
}
