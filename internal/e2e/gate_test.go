package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// startGate runs a gate that may reach loopback, with more settings for egress, and returns its
// address.
func startGate(t *testing.T, egress ...string) string {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "gate.yaml")
	egress = append(egress, "allow_private: [127.0.0.0/8]")
	text := "listen: 127.0.0.1:0\ndata_dir: data\nadmin: {listen: \"\"}\negress: {" + strings.Join(egress, ", ") + "}\nlog: {level: error}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), gateKey+"="+config)
	gate, err := gatetest.StartGate(cmd, t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gate.Terminate(); err != nil {
			t.Errorf("the gate ends with %v", err)
		}
	})
	return strings.TrimPrefix(gate.Proxy, "http://")
}
