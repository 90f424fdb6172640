package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"robotsgate/internal/gatetest"
)

func TestMain(m *testing.M) {
	// The race detector lets every process linger for a second when it ends,
	// in case another thread has a report to make. There are hundreds of them.
	os.Setenv("GORACE", "atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	testscript.Main(m, map[string]func(){
		"robotsgate": main,
		"fetch":      func() { os.Exit(gatetest.Fetch()) },
	})
}

// TestScripts runs the stories in testdata/script, one a file.
func TestScripts(t *testing.T) {
	testscript.Run(t, gatetest.Params("testdata/script"))
}
