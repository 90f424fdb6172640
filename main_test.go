package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"robotsgate/internal/gatetest"
)

func TestMain(m *testing.M) {
	// The race detector delays the end of each process by a second, so that other threads can
	// report a race. The tests start hundreds of processes.
	os.Setenv("GORACE", "atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	gatetest.Parallel()
	testscript.Main(m, map[string]func(){
		"robotsgate": main,
		"fetch":      func() { os.Exit(gatetest.Fetch()) },
	})
}

// TestScripts runs the scripts in testdata/script.
func TestScripts(t *testing.T) {
	gatetest.Needs(t, "sh", "env", "cat", "chmod", "cp", "grep", "head", "ls", "mv", "sed", "sleep", "sort", "stat", "tail")
	testscript.Run(t, gatetest.Params("testdata/script"))
}
