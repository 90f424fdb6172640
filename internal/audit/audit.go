// Package audit writes the record of every request, as one JSON object a line: what was
// decided, and on which evidence. The records are the leaves of a transparency log: package evidence makes the
// lines with its checkpoints.
//
// [Open] begins a log, and [Log.Write] adds a record. [Reading.Print] reads logs, and prints a summary, a record, a
// replay or a verification.
package audit

// Where to change what.
//
//	what is in a record:
//		internal/record, encode.go and docs/audit.md
//	when checkpoint lines are written:
//		writer.go
//	what is counted in a summary, and what is printed for people:
//		summary.go, and a template in reports

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/evidence"
	"robotsgate/internal/record"
)

// A Log writes entries. A nil Log writes nothing.
type Log struct {
	gate   string
	log    *slog.Logger
	health health
	queue  *queue
	writer *writer // its goroutine's, until that has ended
}

// Options say where entries go, and what is in them.
type Options struct {
	Config
	// Evidence says which transparency log the entries are of, and which gate writes. Its Dir is empty if the gate does not
	// own data_dir. Open sets its Place, Path and Files.
	Evidence evidence.Options
}

// closeWait is how long Close waits for the last entries to be written.
const closeWait = 5 * time.Second

// Open begins a log that appends to a file, or writes to stdout. It reports whether the file
// can be opened.
func Open(o Options, stdout io.Writer, log *slog.Logger) (*Log, error) {
	l := &Log{gate: o.Evidence.Gate, log: log, queue: newQueue()}
	l.health.log = log
	l.writer = &writer{
		log: log, health: &l.health, queue: l.queue,
		out:    output{path: o.File, stdout: stdout, max: maxFile, keep: o.Keep, log: log},
		probed: make(chan struct{}), done: make(chan struct{}),
	}
	l.writer.out.last = func() { _ = l.writer.checkpoint(false) } // it logs a failure
	if err := l.writer.openLog(o.Evidence); err != nil {
		return nil, err
	}
	l.writer.publish()
	go l.writer.run(o.Required)
	if o.Required {
		l.awaitProbe()
	}
	return l, nil
}

// openLog opens the output, and begins the log in it or continues the one that is there. A gate writes a file of
// its own if another gate owns its data_dir, or writes the configured file.
func (w *writer) openLog(o evidence.Options) (err error) {
	configured := w.out.path
	ext := filepath.Ext(configured)
	own := strings.TrimSuffix(configured, ext) + "." + o.Gate + ext
	if _, err := os.Stat(own); !isStream(configured) && (o.Dir == "" || err == nil) {
		w.out.path = own
	}
	if err = w.out.open(); errors.Is(err, errOther) {
		w.out.path = own
		err = w.out.open()
	}
	if err != nil {
		return err
	}
	if w.out.path != configured {
		w.log.Warn("another gate writes log.audit or owns data_dir: this one writes a file of its own", "file", w.out.path)
	}
	if w.out.stream {
		o.Dir = "" // nothing can be continued there
	}
	o.Place, o.Path, o.Files = record.ReadPlace, w.out.path, append(rotatedFiles(w.out.path), w.out.path)
	slices.Reverse(o.Files)
	if w.lines, err = evidence.OpenLog(o); err != nil {
		return err
	}
	if why := w.lines.Broken; why != "" {
		w.log.Error("the audit log can't be continued, and a new one begins: find out who changed it, and keep what is left of it", "reason", why, "log", w.lines.Name())
	}
	if was := w.lines.Moved; was != "" {
		w.log.Warn("log.audit has been changed, and a new log begins; to verify the one before, keep its files", "before", was, "now", o.Path, "log", w.lines.Name())
	}
	return w.out.begin(w.lines.Continues)
}

// awaitProbe waits until the writer has probed the log, but not longer than a write may take.
func (l *Log) awaitProbe() {
	select {
	case <-l.writer.probed:
	case <-time.After(maxWrite):
		l.health.failing.CompareAndSwap(nil, &errTooSlow)
	}
	if err := l.Err(); err != nil {
		l.health.report(err)
	}
}

// Write adds the record of a request. It does not wait until the record is written.
func (l *Log) Write(x *record.Record) {
	if l == nil {
		return
	}
	r := *x
	r.Gate = l.gate
	r.Bound()
	line, err := lineOf(r)
	if err == nil {
		err = l.queue.add(line)
	}
	if err != nil {
		l.health.lose(1, err)
	}
}

// Err reports why entries can't be written now, nil if they can.
func (l *Log) Err() error {
	if l == nil {
		return nil
	}
	return l.health.err()
}

// Lost returns how many entries have been lost since the start.
func (l *Log) Lost() int64 {
	if l == nil {
		return 0
	}
	return l.health.lost.Load()
}

// Status returns the state of the transparency log.
func (l *Log) Status() Status { return *l.writer.status.Load() }

// Close writes the remaining entries and the last checkpoint, and closes the file.
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
