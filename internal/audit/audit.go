// Package audit writes down every request: one JSON object a line, with what
// was decided and on which evidence. Each record is linked to the one before it.
//
// It also reads what it has written: [Lines], [Verify] and [Summary].
package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/proxy"
)

// A Log writes records. A nil Log writes nothing.
type Log struct {
	redact bool
	log    *slog.Logger
	file   *file     // nil: out
	out    io.Writer // standard output

	keepHeads time.Duration
	key       Key // of the chain

	drafts sync.Pool // of *draft
	queue  *queue
	// The queue's alone, until it has ended:
	chain   chain
	linked  []byte // memory for lines with their links
	head    headWriter
	wrote   time.Time // the last record
	in      int       // the opening of the file that has it
	said    time.Time // when it was last said that the log can't be written
	headErr time.Time // and a head
	failed  int       // records lost since said
	untold  int       // records lost since the last that was written
	torn    bool      // out has half a line

	lost    atomic.Int64          // records, since the start
	failing atomic.Pointer[error] // why records are not written now
	odd     atomic.Int64          // records that could not be encoded, since the last that was written
	jammed  atomic.Int64          // when it was last said that the queue is full, in Unix seconds
}

// Options say where records go, and what of them.
type Options struct {
	File        string        // is rotated at 100 MiB; "-" is standard output
	Keep        int           // rotated files
	RedactQuery bool          // query values become *
	Heads       string        // folder for how far the chain of records has come; empty: nowhere
	KeepHeads   time.Duration // of chains that have ended
	Key         Key           // of the chain; nil: none
}

// New returns a log that appends to a file, or writes to stdout.
func New(o Options, stdout io.Writer, log *slog.Logger) *Log {
	l := &Log{redact: o.RedactQuery, log: log, out: stdout, keepHeads: o.KeepHeads, key: o.Key, chain: newChain(o.Key), head: headWriter{dir: o.Heads}}
	if o.File != "-" {
		l.file = &file{path: o.File, max: maxFile, keep: o.Keep}
	}
	l.queue = newQueue(l.write, func() (again time.Duration) {
		again = l.settle()
		if l.failing.Load() != nil && !l.recovered() {
			again = settleAfter
		}
		return again
	})
	return l
}

// Check reports whether the log can be written. It comes before the first Write.
func (l *Log) Check() error {
	if dir := l.head.dir; dir != "" {
		_ = os.MkdirAll(dir, 0o700) // keepHead says so if that can't be done
		seal(dir, l.key, l.log)
		removeOldHeads(dir, l.keepHeads, l.log)
	}
	if l.file == nil {
		_, err := l.out.Write(nil)
		return err
	}
	_, err := l.ready(0)
	l.file.unlock()
	return err
}

// ready is file's, and says what it has cut off.
func (l *Log) ready(n int) (empty bool, err error) {
	empty, cut, err := l.file.ready(n)
	if cut > 0 {
		l.log.Warn("the audit log ended in the middle of a record, as after a power cut; that half is removed", "file", l.file.path, "bytes", cut)
	}
	return empty, err
}

// Write writes down one request, soon. It never waits.
func (l *Log) Write(x *proxy.Record) {
	if l == nil {
		return
	}
	d, _ := l.drafts.Get().(*draft)
	if d == nil {
		d = new(draft)
	}
	d.take(x, l.redact)
	line, err := appendLine(d.line, &d.Record, &d.clock)
	lost := 0
	if err == nil {
		lost = l.queue.add(line)
		d.line = line
	}
	d.clear()
	l.drafts.Put(d)
	if err != nil {
		l.log.Error("a request can't be written down; please report it", "id", x.ID, "error", err)
		l.odd.Add(1)
		l.lost.Add(1)
		l.failing.Store(new(err))
		l.queue.call() // so that it finds out whether others can be
		return
	}
	if lost == 0 {
		return
	}
	l.lost.Add(1)
	l.failing.Store(new(errTooSlow))
	if now, last := time.Now().Unix(), l.jammed.Load(); now-last >= 60 && l.jammed.CompareAndSwap(last, now) {
		l.log.Error(tooSlow, "lost", lost)
	}
}

const unwritable = "the audit log can't be written; check log.audit, its disk and permissions"

const tooSlow = "the audit log is too slow: records are lost; check log.audit, its disk, or who reads the pipe"

var errTooSlow = errors.New("it takes nothing: its disk, or who reads the pipe, is too slow")

// hangs is how long a write may take before it counts as one that does not end.
const hangs = 5 * time.Second

// Err reports why records can't be written now, nil if they can: since the last record or
// trial that could not be, see [Log.recovered].
func (l *Log) Err() error {
	if l == nil {
		return nil
	}
	if err := l.failing.Load(); err != nil {
		return *err
	}
	if l.queue.busy() > hangs {
		return errTooSlow
	}
	return nil
}

// write is the queue's. A log that can't be written is reported once a minute, and
// requests go on.
func (l *Log) write(lines []byte, lost int) {
	if lost > 0 {
		l.log.Error(tooSlow, "lost", lost)
	}
	l.untold += lost + int(l.odd.Swap(0))
	if len(lines) == 0 {
		return
	}
	records, err := l.append(lines)
	if err == nil {
		l.works()
		return
	}
	l.failing.Store(&err)
	l.lost.Add(int64(records))
	l.failed += records
	l.untold += records
	if time.Since(l.said) >= time.Minute {
		l.said = time.Now()
		l.log.Error(unwritable, "error", err, "lost", l.failed)
		l.failed = 0
	}
}

// append links lines and writes them. It returns how many are not written.
func (l *Log) append(lines []byte) (lost int, err error) {
	const link = 250 // bytes, about
	n := bytes.Count(lines, []byte{'\n'})
	place := ""
	l.lease(n)
	if l.file != nil {
		defer l.file.unlock()
		empty, err := l.ready(len(lines) + n*link)
		switch {
		case err != nil:
			return n, err
		case empty:
			place = begins
		case l.chain.number > 0 && l.in != l.file.opened:
			place = moved
		}
	}
	out := slices.Grow(l.linked[:0], len(lines)+n*link)
	if l.linked = out; cap(out) > 1<<20 {
		l.linked = nil // after a jam
	}
	if l.torn {
		out = append(out, '\n')
	}
	before, untold := l.chain, l.untold
	for line := range bytes.Lines(lines) {
		out = l.chain.link(out, line, l.untold, place)
		l.untold, place = 0, ""
	}
	written := 0
	if l.file != nil {
		written, err = l.file.write(out)
	} else {
		written, err = l.out.Write(out)
		l.torn = err != nil && (l.torn || written > 0)
	}
	if err == nil {
		l.written()
		return 0, nil
	}
	whole := l.rewind(before, out[:written])
	if whole > 0 {
		l.written()
	}
	if whole == 0 {
		l.untold = untold // no record tells it yet
	}
	return n - whole, err
}

// written takes down when and where the last record was.
func (l *Log) written() {
	l.wrote = time.Now()
	if l.file != nil {
		l.in = l.file.opened
	}
}

// rewind makes the chain end with the last line that was written whole, and returns
// how many were.
func (l *Log) rewind(before chain, written []byte) (whole int) {
	l.chain = before
	for line := range bytes.Lines(written) {
		if !bytes.HasSuffix(line, []byte("}\n")) {
			continue
		}
		whole++
		l.chain.number++
		l.chain.hash = hash(line[len(line)-len("\"}\n")-len(hash{}) : len(line)-len("\"}\n")])
	}
	return whole
}

// Lost returns how many records have been lost since the start.
func (l *Log) Lost() int64 {
	if l == nil {
		return 0
	}
	return l.lost.Load()
}

// Close writes what is left, and closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	if err := l.queue.close(); err != nil {
		return err // whose file is in use
	}
	if l.chain.number > 0 || l.head.kept.Chain != "" {
		l.keepHead(Head{Ended: true})
		l.head.close()
	}
	if l.chain.number > 0 {
		l.log.Info("the audit log's chain ends here", "chain", l.chain.id, "number", l.chain.number, "hash", string(l.chain.hash[:]))
	}
	if l.untold > 0 {
		l.log.Error("the last records of the audit log could not be written", "lost", l.untold)
	}
	if l.file == nil {
		return nil
	}
	if err := l.file.close(); err != nil {
		return fmt.Errorf("%s: %w", l.file.path, err)
	}
	return nil
}
