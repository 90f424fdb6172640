package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"robotsgate/internal/gatetest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"robotsgate": main,
		"fetch":      func() { os.Exit(gatetest.Fetch()) },
	})
}

// TestScripts runs the stories in testdata/script, one a file.
func TestScripts(t *testing.T) {
	testscript.Run(t, gatetest.Params("testdata/script"))
}
