package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/proxy"
)

// progressInterval is the time between two updates of the status line.
const progressInterval = time.Second

// follow shows what text returns, each second, until end is called. Then the line stays
// if keep is true, and is erased otherwise.
func (l *statusLine) follow(text func() string, keep bool) (end func()) {
	if l == nil {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
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
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped
		last := ""
		if keep {
			last = text()
		}
		l.end(last)
	})
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

// A progress counts the requests to a gate, and their origins.
type progress struct {
	*counter
	rate rate
}

func newProgress() *progress {
	// A request that is not decided by a robots.txt counts for no origin.
	origin := func(x *proxy.Record) string {
		if x.Decision == nil {
			return ""
		}
		return x.Decision.URL
	}
	return &progress{counter: newCounter(origin), rate: rate{at: time.Now()}}
}

// text returns a summary, with the rate since its last call.
func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	unreachable := ""
	if p.unreachable > 0 {
		unreachable = fmt.Sprintf(", %d of them unreachable", p.unreachable)
	}
	return fmt.Sprintf("%s (%d/s), %s%s, %s", plural(p.requests, "request"), p.rate.perSecond(int64(p.requests)), p.deniedLocked(), unreachable, p.targetsLocked("origin"))
}

// A batchProgress counts the lines of a batch.
type batchProgress struct {
	lines, bytes atomic.Int64
	size         int64 // of the whole input; 0 if it is not known
	rate         rate
}

func newBatchProgress(in io.Reader) *batchProgress {
	p := &batchProgress{rate: rate{at: time.Now()}}
	file, ok := in.(*os.File)
	if !ok {
		return p
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		p.size = info.Size()
		if at, err := file.Seek(0, io.SeekCurrent); err == nil {
			p.bytes.Store(at)
		}
	}
	return p
}

// text returns a summary, with the rate since its last call. One goroutine may call it.
func (p *batchProgress) text() string {
	lines, share := p.lines.Load(), ""
	if p.size > 0 {
		share = fmt.Sprintf(", %d%%", min(100, 100*p.bytes.Load()/p.size))
	}
	return fmt.Sprintf("%s%s (%d/s)", plural(int(lines), "line"), share, p.rate.perSecond(lines))
}
