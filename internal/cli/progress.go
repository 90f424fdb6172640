package cli

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"robotsgate/internal/console"
)

// A rate is the speed of a count between two calls of its method.
type rate struct {
	count int64
	at    time.Time // of the last call
}

// perSecond returns the rate since the last call, rounded to the nearest integer.
func (r *rate) perSecond(count int64) int {
	now := time.Now()
	over, more := now.Sub(r.at), count-r.count
	r.count, r.at = count, now
	if over <= 0 {
		return 0
	}
	return int(float64(more)/over.Seconds() + 0.5)
}

// A batchProgress counts the lines of a batch that are answered.
type batchProgress struct {
	lines atomic.Int64
	file  *os.File // the input, if it is a regular file
	size  int64    // of file
	rate  rate
}

func newBatchProgress(in io.Reader) *batchProgress {
	p := &batchProgress{rate: rate{at: time.Now()}}
	if file, ok := in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			p.file, p.size = file, max(info.Size(), 1)
		}
	}
	return p
}

// text returns a summary, with the rate since its last call. One goroutine may call it.
func (p *batchProgress) text() string {
	lines, share := p.lines.Load(), ""
	if p.file != nil {
		if at, err := p.file.Seek(0, io.SeekCurrent); err == nil {
			share = fmt.Sprintf(", %d%%", min(100, 100*at/p.size))
		}
	}
	return fmt.Sprintf("%s%s (%d/s)", console.Plural(int(lines), "line"), share, p.rate.perSecond(lines))
}
