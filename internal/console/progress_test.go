package console

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(file, make([]byte, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if _, err := in.Seek(100, io.SeekStart); err != nil { // a shell has read that
			t.Fatal(err)
		}
		known, unknown := NewProgress(in), NewProgress(&bytes.Buffer{})
		for _, p := range []*Progress{known, unknown} {
			p.Lines.Add(40)
		}
		if _, err := io.CopyN(io.Discard, in, 400); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // fake clock
		if got, want := known.Text(), "40 lines, 50% (20/s)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := unknown.Text(), "40 lines (20/s)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
