package policy

import (
	"net/http"
	"strings"
)

// varies reports whether a response depends on the User-Agent that asked, RFC 9110, 12.5.5.
// "*" is any part of the request. Where robots.user_agent is set, all fetches carry the same
// one; the answer still binds one product token, as the setting may be another tomorrow.
func varies(h http.Header) bool {
	for _, line := range h.Values("Vary") {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.TrimSpace(name)
			if name == "*" || strings.EqualFold(name, "User-Agent") {
				return true
			}
		}
	}
	return false
}
