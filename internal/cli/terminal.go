package cli

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"sync"

	"golang.org/x/term"
)

// A statusLine is the last line of a terminal, drawn anew in its place. All else
// that goes to the terminal has to go through it, so that neither garbles the other.
// A nil statusLine shows nothing.
type statusLine struct {
	screen io.Writer
	width  func() int // of the terminal, in columns; 0: it is not ours to draw on

	mu      sync.Mutex
	text    string // "" if there is no line
	drawn   bool
	between bool // the cursor is in the middle of a line of somebody else's
}

// newStatusLine returns a line on the terminal that w is, nil if it is none, or one
// that can't move its cursor.
func newStatusLine(w io.Writer, getenv func(string) string) *statusLine {
	file, ok := terminal(w)
	if !ok || getenv("TERM") == "dumb" || getenv("TERM") == "" && runtime.GOOS != "windows" {
		return nil
	}
	return &statusLine{screen: w, width: func() int {
		if !foreground(file) {
			return 0
		}
		width, _, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 0 {
			return 80 // as terminals are that don't say
		}
		return width
	}}
}

func terminal(w any) (*os.File, bool) {
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// around returns a writer to a terminal that shows the line too.
func (l *statusLine) around(w io.Writer) io.Writer {
	if _, ok := terminal(w); l == nil || !ok {
		return w
	}
	return beside{l, w}
}

// show draws text, as much of it as one line holds. It must be ASCII.
func (l *statusLine) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
	l.draw()
}

// end leaves the line as text, "" for nothing, and goes to the next.
func (l *statusLine) end(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text = text; text == "" {
		l.clear()
		return
	}
	if l.draw(); l.drawn {
		_, _ = io.WriteString(l.screen, "\n")
	}
	l.text, l.drawn = "", false
}

const eraseToEnd = "\x1b[K" // ECMA-48, 8.3.41

// draw writes the line over what it was. The caller holds the lock. The last column
// stays free: a character there makes some terminals go on to the next line.
func (l *statusLine) draw() {
	width := l.width()
	if l.between || l.text == "" || width == 0 {
		return
	}
	text := l.text[:min(len(l.text), width-1)]
	_, _ = io.WriteString(l.screen, "\r"+text+eraseToEnd)
	l.drawn = true
}

// clear takes the line away, so that something else can stand there. The caller
// holds the lock.
func (l *statusLine) clear() {
	if l.drawn && l.width() > 0 {
		_, _ = io.WriteString(l.screen, "\r"+eraseToEnd)
	}
	l.drawn = false
}

// beside writes above a status line.
type beside struct {
	line *statusLine
	w    io.Writer
}

func (b beside) Write(p []byte) (int, error) {
	l := b.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	n, err := b.w.Write(p)
	if n > 0 {
		l.between = !bytes.HasSuffix(p[:n], []byte("\n"))
	}
	l.draw()
	return n, err
}
