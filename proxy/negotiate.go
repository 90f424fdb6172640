package proxy

import (
	"mime"
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

// negotiate returns the media type of a refusal for an Accept header (RFC 9110, section 12.5.1):
// the one with the greatest weight. If weights are equal, it is the one that the header names
// more specifically.
func negotiate(accept []string) string {
	best := forms[0].mediaType
	if len(accept) == 0 || len(accept) == 1 && accept[0] == "*/*" {
		return best // as most crawlers have it
	}
	weights := parseAccept(accept)
	bestWeight, bestSpecificity := 0.0, 0
	for _, form := range forms {
		for i, r := range form.ranges {
			weight, ok := weights[r]
			if !ok {
				continue
			}
			specificity := len(form.ranges) - i
			if weight > bestWeight || weight > 0 && weight == bestWeight && specificity > bestSpecificity {
				best, bestWeight, bestSpecificity = form.mediaType, weight, specificity
			}
			break
		}
	}
	return best
}

// parseAccept returns the weight of each media range. Malformed ranges are left out.
func parseAccept(lines []string) map[string]float64 {
	weights := map[string]float64{}
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			mediaRange, params, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil {
				continue
			}
			if mediaRange == "*" { // of Java's HttpURLConnection
				mediaRange = "*/*"
			}
			weight := 1.0
			if q, ok := params["q"]; ok {
				weight, err = strconv.ParseFloat(q, 64)
			}
			if _, doubled := weights[mediaRange]; err == nil && weight >= 0 && weight <= 1 && !doubled {
				weights[mediaRange] = weight
			}
		}
	}
	return weights
}
