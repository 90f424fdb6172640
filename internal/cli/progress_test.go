package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy"
)

// TestStatusLine: other output stands above the line, in whole lines, and the line is
// never wider than the terminal.
func TestStatusLine(t *testing.T) {
	var screen bytes.Buffer
	width := 10
	l := &statusLine{screen: &screen, width: func() int { return width }}
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
	for _, w := range []io.Writer{file, &bytes.Buffer{}, io.Discard} {
		l := newStatusLine(w, func(string) string { return "xterm" })
		if l != nil || l.above(w) != w {
			t.Errorf("%T is taken for a terminal", w)
		}
		l.follow(func() string { t.Error("asked for text"); return "" }, true)()
	}
}

func TestProgressText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCounter("origin", originOf)
		if got, want := p.summary(true), "0 requests (0/s), 0 denied, 0 origins"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		robots := func(i int) string { return fmt.Sprintf("http://%d.example/robots.txt", i) }
		for i := range 10 {
			p.count(&proxy.Record{Decision: &policy.Decision{Allow: true, URL: robots(i % 3)}})
		}
		p.count(&proxy.Record{})
		p.count(&proxy.Record{Decision: &policy.Decision{Enforced: true, Reason: policy.ByOverride}, Refused: proxy.Refusal(policy.ByOverride)})
		p.count(&proxy.Record{Decision: &policy.Decision{Enforced: true, Reason: policy.IsUnreachable, URL: robots(3)}, Refused: proxy.Refusal(policy.IsUnreachable)})
		p.count(&proxy.Record{Refused: proxy.ByGuard})
		p.count(&proxy.Record{Refused: proxy.ByGuard})
		p.count(&proxy.Record{Decision: &policy.Decision{Reason: policy.ByRule, URL: robots(3)}})
		time.Sleep(2 * time.Second) // fake clock
		if got, want := p.summary(true), "16 requests (8/s), 4 denied, 1 would be denied, 1 of them unreachable, 4 origins; denied by guard: 2, override: 1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		for i := range maxTargets + 10 {
			p.count(&proxy.Record{Decision: &policy.Decision{Allow: true, URL: robots(i)}})
		}
		if got := len(p.targets); got != maxTargets {
			t.Errorf("%d origins are remembered", got)
		}
	})
}

func TestBatchProgress(t *testing.T) {
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
		known, unknown := newBatchProgress(in), newBatchProgress(&bytes.Buffer{})
		for _, p := range []*batchProgress{known, unknown} {
			p.lines.Add(40)
		}
		if _, err := io.CopyN(io.Discard, in, 400); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // fake clock
		if got, want := known.text(), "40 lines, 50% (20/s)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := unknown.text(), "40 lines (20/s)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
