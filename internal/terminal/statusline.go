// Package terminal recognises terminals, and shows a line of progress on them.
package terminal

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/term"
)

// progressInterval is the time between two updates of the status line.
const progressInterval = time.Second

// A StatusLine is the last line of a terminal, redrawn in place. All other output to the
// terminal must go through [StatusLine.Above]. A nil StatusLine shows nothing.
type StatusLine struct {
	screen io.Writer
	width  func() int // of the terminal, in columns; 0: the process must not draw on it

	mu      sync.Mutex
	text    string // "" if there is no line
	drawn   bool
	midLine bool // the other output does not end with a line break
}

// NewStatusLine returns a line on the terminal w, nil if w is no terminal, or one that
// can't move its cursor.
func NewStatusLine(w io.Writer) *StatusLine {
	file, ok := ANSI(w)
	if !ok {
		return nil
	}
	return &StatusLine{screen: w, width: func() int {
		if !foreground(file) {
			return 0
		}
		width, _, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 0 {
			return 80 // the common width
		}
		return width
	}}
}

// ANSI returns the terminal w if it understands escape sequences.
func ANSI(w any) (*os.File, bool) {
	file, ok := File(w)
	kind := os.Getenv("TERM")
	return file, ok && kind != "dumb" && (kind != "" || runtime.GOOS == "windows")
}

// File returns w if it is a terminal.
func File(w any) (*os.File, bool) {
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// Above returns a writer for other output to the terminal w, above the line.
func (l *StatusLine) Above(w io.Writer) io.Writer {
	if _, ok := File(w); l == nil || !ok {
		return w
	}
	return writerAbove{l, w}
}

// Follow shows what text returns, each second, until end is called. Then the line stays
// if keep is true, and is erased otherwise.
func (l *StatusLine) Follow(text func() string, keep bool) (end func()) {
	if l == nil {
		return func() {}
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.show(text())
			case <-stop:
				return
			}
		}
	})
	return func() {
		close(stop)
		running.Wait()
		last := ""
		if keep {
			last = text()
		}
		l.end(last)
	}
}

// show draws text, cut to the width of the terminal. It must be ASCII.
func (l *StatusLine) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
	l.drawLocked()
}

// end shows text for the last time and moves to the next line. With "" it erases the line.
func (l *StatusLine) end(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text = text; text == "" {
		l.eraseLocked()
	} else if l.drawLocked(); l.drawn {
		_, _ = io.WriteString(l.screen, "\n")
	}
	l.text, l.drawn = "", false
}

const eraseToEnd = "\x1b[K" // ECMA-48, 8.3.41

// drawLocked draws the line, for a caller that holds mu. The last column stays free: some
// terminals begin a new line after a character there.
func (l *StatusLine) drawLocked() {
	width := l.width()
	if l.midLine || l.text == "" || width == 0 {
		return
	}
	text := l.text[:min(len(l.text), width-1)]
	_, _ = io.WriteString(l.screen, "\r"+text+eraseToEnd)
	l.drawn = true
}

// eraseLocked erases the line, for a caller that holds mu.
func (l *StatusLine) eraseLocked() {
	if l.drawn && l.width() > 0 {
		_, _ = io.WriteString(l.screen, "\r"+eraseToEnd)
	}
	l.drawn = false
}

// writerAbove writes above a status line.
type writerAbove struct {
	line *StatusLine
	w    io.Writer
}

func (a writerAbove) Write(p []byte) (int, error) {
	l := a.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.eraseLocked()
	n, err := a.w.Write(p)
	if n > 0 {
		l.midLine = !bytes.HasSuffix(p[:n], []byte("\n"))
	}
	l.drawLocked()
	return n, err
}
