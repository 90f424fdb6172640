package cli

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/config"
	"robotsgate/proxy"
)

// RequestLines are the options of serve and run for lines about requests.
type RequestLines struct {
	Verbose bool `xor:"lines" help:"Show a line for every request, not only for those refused."`
	Quiet   bool `xor:"lines" help:"Show no lines about requests."`
}

// choose returns which requests get a line. An option precedes log.requests. Without both, a
// terminal shows the refused ones.
func (o RequestLines) choose(c *config.Config, onTerminal bool) config.Requests {
	switch {
	case o.Quiet:
		return config.NoRequests
	case o.Verbose:
		return config.AllRequests
	case onTerminal && !c.Has("log.requests"):
		return config.RefusedRequests
	}
	return c.Log.Requests
}

// A requestLine is what a line says about a request. It holds nothing of the proxy's: a
// decision would keep its robots.txt in memory.
type requestLine struct {
	end      time.Time
	duration time.Duration
	id       string
	client   string
	crawler  string
	method   string
	url      string
	status   int
	refused  bool   // by the gate
	reason   string // see [proxy.Record.Kind]
	cause    string // of that, or of a failure
}

// maxLineText bounds each text of a line that waits, in bytes: a rule may be as long as its
// robots.txt.
const maxLineText = 2 << 10

func requestLineOf(x *proxy.Record, redact bool) requestLine {
	url := x.URL
	if redact {
		url = audit.Redact(url)
	}
	r := requestLine{
		end: x.Start.Add(x.Duration), duration: x.Duration, id: x.ID, crawler: x.Crawler, method: bounded(x.Method), url: bounded(url), status: x.Status,
		refused: x.Refused != "", reason: string(x.Kind()), cause: bounded(x.Error),
	}
	if x.Client.IsValid() {
		r.client = x.Client.String()
	}
	if r.denied() {
		r.cause = bounded(x.Cause())
	}
	return r
}

// denied reports whether the request was refused, or would be in enforce mode.
func (r *requestLine) denied() bool { return r.reason != "" }

func bounded(s string) string {
	if len(s) <= maxLineText {
		return s
	}
	return strings.ToValidUTF8(s[:maxLineText], "") + "…"
}

// A lineForm is a way to write lines about requests.
type lineForm struct {
	// print writes lines, and the number of those that were left out after them.
	print func(lines []requestLine, more int)
	max   int           // lines that may wait for print
	pause time.Duration // after each call of print
}

// requestLines writes lines about requests. Requests do not wait for that: lines that must not
// wait either are only counted. A nil requestLines writes nothing.
type requestLines struct {
	form   lineForm
	choose func(*config.Config) config.Requests
	redact bool

	chosen atomic.Pointer[config.Requests]
	wake   chan struct{} // holds one
	stop   chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	waiting []requestLine
	more    int
}

// showRequests begins to write lines about requests: to the screen, or if that is nil or the log
// has to be JSON, to the log.
func (g *gate) showRequests(o RequestLines, screen *lineScreen) {
	form := linesForLog(g.log.Handler())
	if screen != nil && g.config.Log.Format != "json" {
		form = linesForScreen(screen)
	}
	g.lines = newRequestLines(form, g.config.Log.RedactQuery, func(c *config.Config) config.Requests { return o.choose(c, screen != nil) })
	g.lines.use(g.config)
}

// newRequestLines starts the writing, which goes on until close is called.
func newRequestLines(form lineForm, redact bool, choose func(*config.Config) config.Requests) *requestLines {
	l := &requestLines{form: form, redact: redact, choose: choose, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	l.chosen.Store(new(config.NoRequests))
	go func() {
		defer close(l.ended)
		for {
			select {
			case <-l.wake:
				l.flush()
				l.rest()
			case <-l.stop:
				l.flush()
				return
			}
		}
	}()
	return l
}

// use puts a changed configuration in force.
func (l *requestLines) use(c *config.Config) {
	if l != nil {
		l.chosen.Store(new(l.choose(c)))
	}
}

// add adds the line of a request that is over.
func (l *requestLines) add(x *proxy.Record) {
	if l == nil {
		return
	}
	if which := *l.chosen.Load(); which == config.NoRequests || which == config.RefusedRequests && x.Kind() == "" {
		return
	}
	l.mu.Lock()
	if len(l.waiting) < l.form.max {
		l.waiting = append(l.waiting, requestLineOf(x, l.redact))
	} else {
		l.more++
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *requestLines) flush() {
	l.mu.Lock()
	lines, more := l.waiting, l.more
	l.waiting, l.more = nil, 0
	l.mu.Unlock()
	if len(lines) > 0 {
		l.form.print(lines, more)
	}
}

// rest waits for the pause after a call of print.
func (l *requestLines) rest() {
	if l.form.pause == 0 {
		return
	}
	select {
	case <-time.After(l.form.pause):
	case <-l.stop:
	}
}

// lastLines is how long close waits for the lines that are left. A terminal may be stopped.
const lastLines = time.Second

// close writes the lines that are left.
func (l *requestLines) close() {
	if l == nil {
		return
	}
	close(l.stop)
	select {
	case <-l.ended:
	case <-time.After(lastLines):
	}
}
