package e2e

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"robotsgate/internal/cli"
	"robotsgate/internal/gatetest"
)

// TestMain puts programs on the PATH: robotsgate, fetch, which is Go's own HTTP client, and the one that makes the attempts to
// escape.
func TestMain(m *testing.M) {
	// The race detector delays the end of each process by a second, so that other threads can
	// report a race. The tests start hundreds of processes.
	os.Setenv("GORACE", "atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	gatetest.Parallel()
	testscript.Main(m, map[string]func(){
		"robotsgate": cli.Main,
		"fetch":      func() { os.Exit(gatetest.Fetch()) },
		"without":    without,
		"escapes":    escapes,
	})
}

// longWithoutRace skips a test that measures times, or takes most of its time in other processes, unless the
// long tests run without the race detector, as .ci/long runs this package.
func longWithoutRace(t *testing.T) {
	t.Helper()
	gatetest.Long(t)
	if race := !gatetest.Size(false, true); race {
		t.Skip("this test runs without the race detector only")
	}
}
