package proxy_test

import (
	"strings"
	"testing"

	"robotsgate/proxy/internal/proxytest"
)

// TestTooComplex checks how a request is refused for which the rules take too many steps.
func TestTooComplex(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Robots: "User-agent: *\n" + strings.Repeat("Allow:/*/ab\n", 42000)})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		resp, body := v.Get(t, "/ab"+strings.Repeat("x", 16000))
		proxytest.WantStatus(t, resp, 403)
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=too-complex")
		if !strings.Contains(body, `"urn:robotsgate:too-complex"`) || !strings.Contains(body, "takes more steps than a decision may") {
			t.Errorf("got %.500s", body)
		}
		resp, _ = v.Get(t, "/x")
		proxytest.WantStatus(t, resp, 200)
	})
}
