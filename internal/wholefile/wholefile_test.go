package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// only returns the content of a file, and reports others in its folder.
func only(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) > 1 {
		t.Errorf("got %v, %v, want one file", entries, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"a long text", "short", ""} {
		if err := Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := only(t, path); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v, %v; want a file that only its owner can read", info.Mode(), err)
	}
}

// TestWriteFails: a failure leaves the file that was there, and no other.
func TestWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, []byte("before")); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no space")
	err := WriteFunc(path, func(f *os.File) error {
		f.WriteString("half")
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	if got := only(t, path); got != "before" {
		t.Errorf("got %q, want the file as it was", got)
	}
	if err := Write(filepath.Join(path, "file"), nil); err == nil {
		t.Errorf("got %v, want the error of a folder that is a file", err)
	}
}

// TestConcurrent: several writers leave one of their texts, and a reader sees no part of one.
func TestConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	whole := func(text string) bool { return len(text) == 1<<16 && strings.Count(text, text[:1]) == len(text) }
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 5 {
				if err := Write(path, []byte(strings.Repeat(string(rune('a'+i)), 1<<16))); err != nil {
					t.Error(err)
				}
				if text, err := os.ReadFile(path); err != nil || !whole(string(text)) {
					t.Errorf("%v, %d bytes", err, len(text))
				}
			}
		})
	}
	all.Wait()
	if text := only(t, path); !whole(text) {
		t.Errorf("%d bytes", len(text))
	}
}

// TestCreateSoon: of several that create a file at once one has made it, and the others replace nothing.
func TestCreateSoon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	texts := make(chan string, 4)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			text := string(rune('a' + i))
			switch err := CreateSoon(path, []byte(text)); {
			case err == nil:
				texts <- text
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(texts) != 1 {
		t.Fatalf("%d have made the file", len(texts))
	}
	if got, want := only(t, path), <-texts; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
