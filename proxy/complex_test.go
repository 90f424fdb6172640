package proxy

import (
	"strings"
	"testing"
)

// TestTooComplex checks how a request is refused for which the rules take too many steps.
func TestTooComplex(t *testing.T) {
	w := newWorld(t, options{robots: "User-agent: *\n" + strings.Repeat("Allow:/*/ab\n", 42000)})
	w.ways(t, func(t *testing.T, v way) {
		resp, body := v.get(t, "/ab"+strings.Repeat("x", 16000))
		wantStatus(t, resp, 403)
		wantHeader(t, resp, headerDecision, "deny;reason=too-complex")
		if !strings.Contains(body, `"urn:robotsgate:too-complex"`) || !strings.Contains(body, "takes more steps than a decision may") {
			t.Errorf("got %.500s", body)
		}
		resp, _ = v.get(t, "/x")
		wantStatus(t, resp, 200)
	})
}
