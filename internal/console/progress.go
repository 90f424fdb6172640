package console

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"robotsgate/internal/terminal"
)

// A Rate is the speed of a count between two calls of its method.
type Rate struct {
	count int64
	at    time.Time // of the last call
}

// NewRate returns a rate that begins now.
func NewRate() Rate { return Rate{at: time.Now()} }

// PerSecond returns the rate since the last call, rounded to the nearest integer.
func (r *Rate) PerSecond(count int64) int {
	now := time.Now()
	over, more := now.Sub(r.at), count-r.count
	r.count, r.at = count, now
	if over <= 0 {
		return 0
	}
	return int(float64(more)/over.Seconds() + 0.5)
}

// A Progress counts the lines of a batch that are answered.
type Progress struct {
	Lines atomic.Int64
	file  *os.File // the input, if it is a regular file
	size  int64    // of file
	rate  Rate
}

// NewProgress returns the progress of reading in, which may be nil.
func NewProgress(in io.Reader) *Progress {
	p := &Progress{rate: NewRate()}
	if file, ok := in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			p.file, p.size = file, max(info.Size(), 1)
		}
	}
	return p
}

// Progress shows the progress of reading in, which may be nil, on s.Err if that is a terminal, until stop is called.
func (s Streams) Progress(in io.Reader) (done *Progress, stop func()) {
	done = NewProgress(in)
	return done, terminal.NewStatusLine(s.Err).Follow(done.Text, false)
}

// Text returns a summary, with the rate since its last call. One goroutine may call it.
func (p *Progress) Text() string {
	lines, share := p.Lines.Load(), ""
	if p.file != nil {
		if at, err := p.file.Seek(0, io.SeekCurrent); err == nil {
			share = fmt.Sprintf(", %d%%", min(100, 100*at/p.size))
		}
	}
	return fmt.Sprintf("%s%s (%d/s)", Plural(int(lines), "line"), share, p.rate.PerSecond(lines))
}
