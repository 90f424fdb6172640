package terminal

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestStatusLine: other output stands above the line, in whole lines, and the line is
// never wider than the terminal.
func TestStatusLine(t *testing.T) {
	var screen bytes.Buffer
	width := 10
	l := &StatusLine{screen: &screen, width: func() int { return width }}
	other := writerAbove{l, &screen}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"nothing yet", func() { io.WriteString(other, "a\n") }, "a\n"},
		{"the line", func() { l.show("0123456789abc") }, "\r012345678\x1b[K"},
		{"again", func() { l.show("1") }, "\r1\x1b[K"},
		{"a line of the log", func() { io.WriteString(other, "b\n") }, "\r\x1b[Kb\n\r1\x1b[K"},
		{"a part of a line", func() { io.WriteString(other, "c") }, "\r\x1b[Kc"},
		{"nothing in the middle of it", func() { l.show("2") }, ""},
		{"its end", func() { io.WriteString(other, "d\n") }, "d\n\r2\x1b[K"},
		{"a narrow terminal", func() { width = 1; l.show("3") }, "\r\x1b[K"},
		{"sent to the background", func() { width = 0; l.show("3"); io.WriteString(other, "x\n") }, "x\n"},
		{"the end", func() { width = 10; l.end("4") }, "\r4\x1b[K\n"},
		{"after it", func() { io.WriteString(other, "e\n") }, "e\n"},
		{"an end in the background", func() { width = 0; l.end("4"); width = 10 }, ""},
		{"another that goes", func() { l.show("5"); l.end("") }, "\r5\x1b[K\r\x1b[K"},
	} {
		step.do()
		if got := screen.String(); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
		screen.Reset()
	}
}

// TestNoStatusLine: a writer that is no terminal gets no line, and is not wrapped.
func TestNoStatusLine(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	t.Setenv("TERM", "xterm")
	for _, w := range []io.Writer{file, &bytes.Buffer{}, io.Discard} {
		l := NewStatusLine(w)
		if l != nil || l.Above(w) != w {
			t.Errorf("%T is taken for a terminal", w)
		}
		l.Follow(func() string { t.Error("asked for text"); return "" }, true)()
	}
}
