package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/proxy"
)

// redrawn is how often progress is shown.
const redrawn = time.Second

// follow shows what text returns once a second, not before one is over. When end is
// called the line stays as it is then, or goes if left is false.
func (l *statusLine) follow(text func() string, left bool) (end func()) {
	if l == nil {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(redrawn)
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
		if left {
			last = text()
		}
		l.end(last)
	})
}

// A progress is what serve has done so far.
type progress struct {
	*tally // by origins

	shown int // requests, when it was last looked at
	at    time.Time
}

func newProgress() *progress {
	// The origin is that of the robots.txt: a request that is not decided by one is
	// for none.
	origin := func(x *proxy.Record) string {
		if x.Decision == nil {
			return ""
		}
		return x.Decision.URL
	}
	return &progress{tally: newTally(origin), at: time.Now()}
}

// text sums up, with the rate since it did so last.
func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	rate := perSecond(p.requests-p.shown, now.Sub(p.at))
	p.shown, p.at = p.requests, now
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%d/s), %d denied", plural(p.requests, "request"), rate, p.denied)
	if p.reported > 0 {
		fmt.Fprintf(&b, ", %d let through", p.reported)
	}
	if p.unreachable > 0 {
		fmt.Fprintf(&b, ", %d of them unreachable", p.unreachable)
	}
	fmt.Fprintf(&b, ", %s", p.counted("origin"))
	return b.String()
}

// perSecond rounds to the nearest.
func perSecond(n int, over time.Duration) int {
	if over <= 0 {
		return 0
	}
	return int(float64(n)/over.Seconds() + 0.5)
}

// A batchProgress is how far a batch has come.
type batchProgress struct {
	lines, bytes atomic.Int64
	size         int64 // of all the input; 0 if it is not known

	shown int64 // lines, when it was last looked at
	at    time.Time
}

// newBatchProgress looks whether in has an end that can be known.
func newBatchProgress(in io.Reader) *batchProgress {
	p := &batchProgress{at: time.Now()}
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

// text is for one goroutine.
func (p *batchProgress) text() string {
	now, lines := time.Now(), p.lines.Load()
	rate := perSecond(int(lines-p.shown), now.Sub(p.at))
	p.shown, p.at = lines, now
	share := ""
	if p.size > 0 {
		share = fmt.Sprintf(", %d%%", min(100, 100*p.bytes.Load()/p.size))
	}
	return fmt.Sprintf("%s%s (%d/s)", plural(int(lines), "line"), share, rate)
}
