// Package audit writes a record of every request, as one JSON object a line: what was
// decided, and on which evidence. Each record has the hash of the one before it.
//
// [Open] begins a log, and [Log.Write] adds a record. [Lines] reads logs and [Follow] one that grows,
// [Filter] selects records, [Summary] counts them, and [Verifier] finds records that were changed,
// removed or added.
package audit

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"robotsgate/proxy"
)

// A Log writes records. A nil Log writes nothing.
type Log struct {
	gate   string
	redact bool
	log    *slog.Logger
	health health
	queue  *queue
	writer *writer // its goroutine's, until that has ended
}

// Options say where records go, and what is in them.
type Options struct {
	File        string        // is rotated at 100 MiB; "-" is standard output
	Keep        int           // number of rotated files
	Gate        string        // the id of the gate that writes
	RedactQuery bool          // query values become *
	Heads       string        // folder for the heads of chains, see [Head]; empty: none are kept
	KeepHeads   time.Duration // how long the heads of old chains are kept
	Key         Key           // of the chain's hashes; nil: none
	Probe       bool          // find out before the first record whether records can be written, see [Log.Err]
}

// closeWait is how long Close waits for the last records to be written.
const closeWait = 5 * time.Second

// Open begins a log that appends to a file, or writes to stdout. It reports whether the file
// can be opened.
func Open(o Options, stdout io.Writer, log *slog.Logger) (*Log, error) {
	l := &Log{gate: o.Gate, redact: o.RedactQuery, log: log, queue: newQueue()}
	l.health.log = log
	l.writer = &writer{
		log: log, health: &l.health, queue: l.queue, chain: newChain(o.Key),
		heads:  headFile{dir: o.Heads, log: log},
		out:    output{path: o.File, stdout: stdout, max: maxFile, keep: o.Keep, log: log},
		probed: make(chan struct{}), done: make(chan struct{}),
	}
	if o.Heads != "" {
		_ = os.MkdirAll(o.Heads, 0o700) // headFile reports a failure
		endKilled(o.Heads, o.Key, log)
		removeOldHeads(o.Heads, o.KeepHeads, log)
	}
	if err := l.writer.out.check(); err != nil {
		return nil, err
	}
	if o.Probe {
		l.health.failing.Store(&errNotProbed)
	}
	go l.writer.run(o.Probe)
	if o.Probe {
		l.awaitProbe()
	}
	return l, nil
}

// awaitProbe waits until the writer has probed the log, but not longer than a write may take.
func (l *Log) awaitProbe() {
	select {
	case <-l.writer.probed:
	case <-time.After(maxWrite):
		l.health.failing.CompareAndSwap(&errNotProbed, &errTooSlow)
	}
	if err := l.Err(); err != nil {
		l.health.report(err)
	}
}

// Write adds the record of a request. It does not wait until the record is written.
func (l *Log) Write(x *proxy.Record) {
	if l == nil {
		return
	}
	buf := lines.Get().(*[]byte)
	defer lines.Put(buf)
	r := recordOf(x, l.redact)
	r.Gate = l.gate
	line, err := r.appendLine((*buf)[:0])
	if cap(line) <= maxPooledLine {
		*buf = line
	}
	if err == nil {
		err = l.queue.add(line)
	}
	if err != nil {
		l.health.lose(1, err)
	}
}

// lines are buffers of type *[]byte for a line. maxPooledLine bounds each, in bytes.
var lines = sync.Pool{New: func() any { return new([]byte) }}

const maxPooledLine = 16 << 10

// Err reports why records can't be written now, nil if they can.
func (l *Log) Err() error {
	if l == nil {
		return nil
	}
	return l.health.err()
}

// Lost returns how many records have been lost since the start.
func (l *Log) Lost() int64 {
	if l == nil {
		return 0
	}
	return l.health.lost.Load()
}

// Close writes the remaining records, ends the chain and closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.queue.close()
	select {
	case <-l.writer.done:
		return l.writer.close()
	case <-time.After(closeWait):
		return fmt.Errorf("%w: the last %d records and more are lost", errTooSlow, l.queue.count())
	}
}
