package gatetest

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// Archives runs check for each archive in testdata that matches a pattern.
func Archives(t *testing.T, pattern string, check func(t *testing.T, ar *txtar.Archive)) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join("testdata", pattern))
	if len(paths) == 0 {
		t.Fatalf("no testdata/%s", pattern)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			check(t, ar)
		})
	}
}

// Unquote returns the lines of a text, which are Go strings.
func Unquote(t testing.TB, text string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		s, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, s)
	}
	return lines
}

// EachCase reads the archives of testdata that match a pattern. Each file in them is a case, as lines "key: value", with
// a key that begins with want. Begin returns what takes the lines of a case and reports whether it knows the key.
// A value that is a Go string is unquoted.
func EachCase(t *testing.T, pattern string, begin func(name string) (set func(key, value string) bool)) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("testdata", pattern))
	if len(files) == 0 {
		t.Fatalf("no %s in testdata", pattern)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range ar.Files {
			set, wants := begin(c.Name), false
			for line := range strings.Lines(string(c.Data)) {
				key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
				if text, err := strconv.Unquote(value); err == nil {
					value = text
				}
				if !set(key, value) {
					t.Fatalf("%s: %s: %s", file, c.Name, line)
				}
				wants = wants || strings.HasSuffix(key, "want")
			}
			if !wants {
				t.Fatalf("%s: %s wants nothing", file, c.Name)
			}
		}
	}
}
