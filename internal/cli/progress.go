package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// progressInterval is the time between two updates of the status line.
const progressInterval = time.Second

// follow shows what text returns, each second, until end is called. Then the line stays
// if keep is true, and is erased otherwise.
func (l *statusLine) follow(text func() string, keep bool) (end func()) {
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
	return fmt.Sprintf("%s%s (%d/s)", plural(int(lines), "line"), share, p.rate.perSecond(lines))
}
