// Package docs tests README.md and docs/: their commands run, their links lead somewhere, and their commands, options
// and keys exist. The tests run at the root of the repository.
package docs

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"robotsgate/internal/cli"
)

// TestMain puts robotsgate on the PATH.
func TestMain(m *testing.M) {
	// The race detector delays the end of each process by a second, so that other threads can
	// report a race. The tests start hundreds of processes.
	os.Setenv("GORACE", "atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	testscript.Main(atRoot{m}, map[string]func(){"robotsgate": cli.Main})
}

// atRoot runs tests, but no program, at the root of the repository.
type atRoot struct{ *testing.M }

func (m atRoot) Run() int {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	return m.M.Run()
}
