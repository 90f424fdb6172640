package lint

import (
	"strings"

	"robotsgate/policy/robotstxt/internal/match"
)

// normalForm returns a pattern as every crawler reads it: what cannot stand in a URL is percent-encoded,
// with hex digits in upper case, and unreserved characters are not.
func normalForm(pattern string) string {
	body, anchored := strings.CutSuffix(pattern, "$")
	var b []byte
	for i := 0; i < len(body); i++ {
		c, ok := match.Unescape(body[i:])
		switch {
		case body[i] == '%' && ok && match.Unreserved(c):
			b = append(b, c)
			i += 2
		case body[i] == '%' && ok:
			b = match.AppendEscaped(b, c)
			i += 2
		case match.Encodes(body[i]) || body[i] == '$':
			b = match.AppendEscaped(b, body[i])
		default:
			b = append(b, body[i])
		}
	}
	if anchored {
		b = append(b, '$')
	}
	return string(b)
}
