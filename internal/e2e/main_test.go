package e2e

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"robotsgate/internal/cli"
	"robotsgate/internal/gatetest"
)

// TestMain puts two programs on the PATH: robotsgate, and fetch, which is Go's own HTTP client.
func TestMain(m *testing.M) {
	// The race detector delays the end of each process by a second, so that other threads can
	// report a race. The tests start hundreds of processes.
	os.Setenv("GORACE", "atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	testscript.Main(m, map[string]func(){
		"robotsgate": cli.Main,
		"fetch":      func() { os.Exit(gatetest.Fetch()) },
	})
}
