package cli

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"sync"

	"golang.org/x/term"
)

// A statusLine is the last line of a terminal, redrawn in place. All other output to the
// terminal must go through [statusLine.above]. A nil statusLine shows nothing.
type statusLine struct {
	screen io.Writer
	width  func() int // of the terminal, in columns; 0: the process must not draw on it

	mu      sync.Mutex
	text    string // "" if there is no line
	drawn   bool
	midLine bool // the other output does not end with a line break
}

// newStatusLine returns a line on the terminal w, nil if w is no terminal, or one that
// can't move its cursor.
func newStatusLine(w io.Writer, getenv func(string) string) *statusLine {
	file, ok := ansiTerminal(w, getenv)
	if !ok {
		return nil
	}
	return &statusLine{screen: w, width: func() int {
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

// ansiTerminal returns the terminal w if it understands escape sequences.
func ansiTerminal(w any, getenv func(string) string) (*os.File, bool) {
	file, ok := terminal(w)
	return file, ok && getenv("TERM") != "dumb" && (getenv("TERM") != "" || runtime.GOOS == "windows")
}

func terminal(w any) (*os.File, bool) {
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// above returns a writer for other output to the terminal w, above the line.
func (l *statusLine) above(w io.Writer) io.Writer {
	if _, ok := terminal(w); l == nil || !ok {
		return w
	}
	return writerAbove{l, w}
}

// show draws text, cut to the width of the terminal. It must be ASCII.
func (l *statusLine) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
	l.drawLocked()
}

// end shows text for the last time and moves to the next line. With "" it erases the line.
func (l *statusLine) end(text string) {
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
func (l *statusLine) drawLocked() {
	width := l.width()
	if l.midLine || l.text == "" || width == 0 {
		return
	}
	text := l.text[:min(len(l.text), width-1)]
	_, _ = io.WriteString(l.screen, "\r"+text+eraseToEnd)
	l.drawn = true
}

// eraseLocked erases the line, for a caller that holds mu.
func (l *statusLine) eraseLocked() {
	if l.drawn && l.width() > 0 {
		_, _ = io.WriteString(l.screen, "\r"+eraseToEnd)
	}
	l.drawn = false
}

// writerAbove writes above a status line.
type writerAbove struct {
	line *statusLine
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
