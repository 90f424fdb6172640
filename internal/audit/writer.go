package audit

import (
	"bytes"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"robotsgate/internal/evidence"
	"robotsgate/internal/logtext"
	"robotsgate/internal/record"
)

// Under load entries are written together: locking the file, and checking that it has not
// been renamed, takes longer than writing an entry.
const (
	// promptWrites is how many writes in a second are not delayed.
	promptWrites = 20
	// writeInterval is the time between the others.
	writeInterval = 10 * time.Millisecond
)

// probeInterval is the time between two probes of a log that fails.
const probeInterval = time.Second

// checkpointInterval is the least time between two checkpoints.
const checkpointInterval = time.Second

// A writer makes the lines of the transparency log of a queue's entries and writes them, in a goroutine of its own.
type writer struct {
	log      *slog.Logger
	health   *health
	queue    *queue
	out      output
	lines    *evidence.Log
	status   atomic.Pointer[Status]
	text     []byte         // memory for lines
	signed   time.Time      // when a checkpoint was tried last
	covered  time.Time      // when a checkpoint was written last; zero: not since the start
	reported logtext.Minute // of failures to keep a checkpoint
	failed   error          // why the last checkpoint could not be kept; nil: it was
	probed   chan struct{}  // closed after the first probe
	done     chan struct{}  // closed when all lines are written
}

// A Status is the state of a transparency log at its last checkpoint, or the last try to make one.
type Status struct {
	Name       string    `json:"log"`
	Key        string    `json:"key"`                 // its verifier key
	Size       int64     `json:"size"`                // entries that the checkpoint covers
	Checkpoint time.Time `json:"checkpoint,omitzero"` // when it was written; zero: not since the start
	Error      string    `json:"error,omitempty"`     // why there is no newer one, if it could not be kept
	Broken     string    `json:"broken,omitempty"`    // why the log could not be continued at the start
}

// run writes lines until the queue is closed. While the log fails it is probed every second: a
// gate that requires the log may get no requests until it works again.
func (w *writer) run(probe bool) {
	defer close(w.done)
	if probe {
		w.health.timed(w.probe)
		close(w.probed)
	}
	w.health.timed(w.cover) // what a gate that was killed has written
	every := time.NewTicker(probeInterval)
	defer every.Stop()
	due := time.NewTimer(checkpointInterval) // of the next checkpoint
	defer due.Stop()
	for writes := 0; ; {
		select {
		case <-due.C:
			w.health.timed(w.cover)
		case <-every.C:
			w.health.timed(w.maintain)
			writes = 0
		case <-w.queue.wake:
			w.health.timed(w.flush)
			if !w.isCovered() {
				due.Reset(max(0, time.Until(w.signed.Add(checkpointInterval))))
			}
			if writes++; writes <= promptWrites {
				continue
			}
			select {
			case <-time.After(writeInterval):
			case <-w.queue.closed:
			}
		case <-w.queue.closed:
			w.health.timed(w.flush)
			return
		}
	}
}

// maintain tries again what has failed: to keep a checkpoint, and to write.
func (w *writer) maintain() {
	if time.Since(w.signed) >= checkpointInterval {
		w.cover()
	}
	if w.health.failing.Load() != nil {
		w.probe()
	}
}

// flush writes the lines that are waiting.
func (w *writer) flush() {
	lines := w.queue.take()
	if len(lines) == 0 {
		return
	}
	if lost, err := w.append(lines); err != nil {
		w.health.lose(lost, err)
		return
	}
	w.health.works()
}

// append writes the lines of entries. It returns the number of lines that are not written.
func (w *writer) append(lines []byte) (lost int, err error) {
	const added = 50 // bytes, about
	n := bytes.Count(lines, []byte{'\n'})
	size := len(lines) + n*added
	if err := w.begin(size); err != nil {
		return n, err
	}
	// A start after a kill takes entries only by their times: they must be near that of the checkpoint before them.
	if time.Since(w.signed) >= checkpointInterval {
		_ = w.checkpoint(false) // it is logged
	}
	untold := w.health.untold.Swap(0)
	text := slices.Grow(w.text[:0], size)
	if w.text = text; cap(text) > 1<<20 {
		w.text = nil // memory of a burst
	}
	index, stated := w.lines.Size(), untold
	for line := range bytes.Lines(lines) {
		text = record.AppendPlace(text, line, stated, index)
		index, stated = index+1, 0
	}
	written, err := w.out.write(text)
	w.lines.Add(text[:written])
	if err == nil {
		return 0, nil
	}
	whole := bytes.Count(text[:written], []byte{'\n'})
	if whole == 0 {
		w.health.untold.Add(untold)
	}
	return n - whole, err
}

// begin prepares the output for n more bytes. If it has no line since it was opened, it writes a checkpoint.
func (w *writer) begin(n int) error {
	if err := w.out.prepare(n); err != nil {
		return err
	}
	if !w.out.fresh {
		return nil
	}
	if err := w.checkpoint(false); err != nil {
		return err
	}
	w.out.fresh = false
	return nil
}

// checkpoint writes a checkpoint line to the output that is prepared. A failure to keep the checkpoint is logged
// once a minute.
func (w *writer) checkpoint(end bool) error {
	w.signed = time.Now()
	w.out.sync() // before the checkpoint is kept, so that it covers no entry that a power cut can take away
	line, err := w.lines.Checkpoint(w.out.size, end)
	if err != nil {
		if w.reported.Add() > 0 {
			w.log.Error("the audit log gets no checkpoint; check the space and permissions of data_dir", "error", err)
		}
		w.failed = err
		w.publish()
		return err
	}
	if w.failed != nil {
		w.log.Info("the audit log gets checkpoints again")
		w.failed = nil
	}
	if _, err := w.out.write(line); err != nil {
		return err
	}
	w.covered = w.signed
	w.publish()
	return nil
}

// publish makes the state of the log known.
func (w *writer) publish() {
	s := &Status{
		Name: w.lines.Name(), Key: w.lines.Key(), Size: w.lines.Covered, Checkpoint: w.covered, Broken: w.lines.Broken,
	}
	if w.failed != nil {
		s.Error = w.failed.Error()
	}
	w.status.Store(s)
}

func (w *writer) isCovered() bool { return w.lines.Covered == w.lines.Size() }

// cover writes a checkpoint, if there are entries without one.
func (w *writer) cover() {
	if w.isCovered() {
		return
	}
	if w.begin(0) == nil && !w.isCovered() {
		_ = w.checkpoint(false) // maintain tries again
	}
}

// probe finds out whether entries can be written.
func (w *writer) probe() {
	err := w.out.prepare(len(probeText))
	if err == nil {
		err = w.out.probe()
	}
	if err != nil {
		w.health.failing.Store(&err)
		return
	}
	w.health.works()
}

// close writes the last checkpoint, after run.
func (w *writer) close() error {
	if !w.out.fresh {
		if w.begin(0) == nil {
			_ = w.checkpoint(true) // it is logged
		}
	}
	if n := w.health.untold.Load(); n > 0 {
		w.log.Error("the last records of the audit log could not be written", "lost", n)
	}
	return w.out.close()
}
