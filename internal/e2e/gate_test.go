package e2e

import (
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// startGate runs a gate that may connect to loopback, with more settings for egress, and returns
// its address.
func startGate(t *testing.T, egress ...string) string {
	t.Helper()
	egress = append(egress, "allow_private: [127.0.0.0/8]")
	config := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\negress: {" + strings.Join(egress, ", ") + "}\nlog: {level: error}\n"
	gate := gatetest.Serve(t, t.TempDir(), config)
	return strings.TrimPrefix(gate.Proxy, "http://")
}
