package gatetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Conformance is Cases for the folder that ROBOTSGATE_CONFORMANCE names. It skips the test without one.
func Conformance(t *testing.T, check func(t *testing.T, where string, line []byte) bool) {
	t.Helper()
	dir := os.Getenv("ROBOTSGATE_CONFORMANCE")
	if dir == "" {
		t.Skip("ROBOTSGATE_CONFORMANCE names no folder with cases")
	}
	Cases(t, dir, check)
}

// Cases calls check for each line of the *.jsonl files of a folder, and returns how many of them are cases. Check
// reports that: a folder may have lines of several kinds.
func Cases(t *testing.T, dir string, check func(t *testing.T, where string, line []byte) bool) (cases int) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range bytes.Lines(data) {
			if n++; check(t, fmt.Sprintf("%s:%d", filepath.Base(file), n), line) {
				cases++
			}
		}
	}
	if cases == 0 {
		t.Errorf("%s has no cases", dir)
	}
	t.Logf("%d cases", cases)
	return cases
}
