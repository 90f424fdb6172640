package gatetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Read returns the content of a file.
func Read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Write writes a file, which may be a program, and makes its folder.
func Write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// InMemory runs the tests of a package and returns their exit status. Their folders are in memory where the system has
// a file system for that: they write thousands of times, and would wait for the disk each time.
func InMemory(m *testing.M) int {
	if dir, err := os.MkdirTemp("/dev/shm", "robotsgate"); err == nil {
		defer os.RemoveAll(dir)
		os.Setenv("TMPDIR", dir)
	}
	return m.Run()
}

// An Output holds what a process prints. It can be read while the process runs.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Has waits until a pattern matches the output at least so many times, and reports whether it does.
func (o *Output) Has(pattern string, times int) bool {
	compiled := regexp.MustCompile(pattern)
	return becomes(2*patience, func() bool { return len(compiled.FindAllString(o.String(), times)) >= times })
}

// becomes waits until a condition is true, and reports whether it is within a time limit.
func becomes(limit time.Duration, condition func() bool) bool {
	for end := time.Now().Add(limit); !condition(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Becomes fails the test unless a condition becomes true within a time limit.
func Becomes(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	if !becomes(limit, condition) {
		t.Fatalf("not within %v: %s", limit, what)
	}
}

// WaitFor waits until a pattern matches the output.
func (o *Output) WaitFor(t testing.TB, pattern string) {
	t.Helper()
	if !o.Has(pattern, 1) {
		t.Fatalf("nothing matches %s in\n%s", pattern, o)
	}
}
