// Package requestlog writes a line for each request that is over, to a terminal or to the log, and the log to a terminal.
package requestlog

// Where to change what.
//
//	lines on a terminal    screen.go
//	lines in the log       forms.go
//	the kinds of refusals  internal/record

import (
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/internal/logtext"
	"robotsgate/internal/record"
)

// A line is what a line says about a request, within the bounds of the audit log.
type line struct {
	end      time.Time
	duration time.Duration
	id       string
	client   string
	crawler  string
	method   string
	url      string
	status   int
	refused  bool   // by the gate
	reason   string // see [record.Record.Kind]
	cause    string // of that, or of a failure
}

func lineOf(x *record.Record) line {
	r := line{
		end: x.Time.Add(x.Took()).Local(), duration: x.Took(), id: x.ID, client: x.Client, crawler: x.Crawler,
		method: logtext.Cut(x.Method, record.MaxText), url: logtext.Cut(x.Address(), record.MaxURL),
		status: x.Status, refused: x.Denied(), reason: string(x.Kind()), cause: x.Error,
	}
	if r.denied() {
		r.cause = x.Cause
	}
	r.cause = logtext.Cut(r.cause, record.MaxText)
	return r
}

// denied reports whether the request was refused, or would be in enforce mode.
func (r *line) denied() bool { return r.reason != "" }

// Requests says which requests get a line.
type Requests string

// The requests with a line.
const (
	None    Requests = "none"    // also at first
	Refused Requests = "refused" // and those that report mode let through
	All     Requests = "all"
)

// A Form is a way to write lines about requests.
type Form struct {
	// print writes lines, and the number of those that were left out after them.
	print func(lines []line, more int)
	max   int           // lines that may wait for print
	pause time.Duration // after each call of print
}

// Lines writes lines about requests. Requests do not wait for that: lines that must not
// wait either are only counted. A nil Lines writes nothing.
type Lines struct {
	form Form

	chosen atomic.Pointer[Requests]
	wake   chan struct{} // holds one
	stop   chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	waiting []line
	more    int
}

// New starts the writing, which goes on until Close is called.
func New(form Form) *Lines {
	l := &Lines{form: form, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	l.chosen.Store(new(None))
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

// Use says which requests get a line from now on.
func (l *Lines) Use(r Requests) {
	if l != nil {
		l.chosen.Store(&r)
	}
}

// Add adds the line of a request that is over.
func (l *Lines) Add(x *record.Record) {
	if l == nil {
		return
	}
	if which := *l.chosen.Load(); which == None || which == Refused && x.Kind() == "" {
		return
	}
	l.mu.Lock()
	if len(l.waiting) < l.form.max {
		l.waiting = append(l.waiting, lineOf(x))
	} else {
		l.more++
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Lines) flush() {
	l.mu.Lock()
	lines, more := l.waiting, l.more
	l.waiting, l.more = nil, 0
	l.mu.Unlock()
	if len(lines) > 0 {
		l.form.print(lines, more)
	}
}

// rest waits for the pause after a call of print.
func (l *Lines) rest() {
	if l.form.pause == 0 {
		return
	}
	select {
	case <-time.After(l.form.pause):
	case <-l.stop:
	}
}

// lastLines is how long Close waits for the lines that are left. A terminal may be stopped.
const lastLines = time.Second

// Close writes the lines that are left.
func (l *Lines) Close() {
	if l == nil {
		return
	}
	close(l.stop)
	select {
	case <-l.ended:
	case <-time.After(lastLines):
	}
}
