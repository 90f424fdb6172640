package audit

import (
	"bytes"
	"log/slog"
	"slices"
	"time"
)

// Under load records are written together: locking the file, and checking that it has not
// been renamed, takes longer than writing a record.
const (
	// promptWrites is how many writes in a second are not delayed.
	promptWrites = 20
	// writeInterval is the time between the others.
	writeInterval = 10 * time.Millisecond
)

// probeInterval is the time between two probes of a log that fails.
const probeInterval = time.Second

// A writer links the lines of a queue and writes them, in a goroutine of its own.
type writer struct {
	log    *slog.Logger
	health *health
	queue  *queue
	out    output
	chain  chain
	heads  headFile
	linked []byte        // memory for lines with their links
	last   time.Time     // when the last record was written
	probed chan struct{} // closed after the first probe
	done   chan struct{} // closed when all lines are written
}

// run writes lines until the queue is closed. While the log fails it is probed every second: a
// gate that requires the log may get no requests until it works again.
func (w *writer) run(probe bool) {
	defer close(w.done)
	if probe {
		w.health.timed(w.probe)
		close(w.probed)
	}
	every := time.NewTicker(probeInterval)
	defer every.Stop()
	reserved := time.NewTimer(reserveTime) // until the reservation of the head ends
	defer reserved.Stop()
	for writes := 0; ; {
		select {
		case <-reserved.C:
			w.health.timed(w.release)
		case <-every.C:
			w.health.timed(w.maintain)
			writes = 0
		case <-w.queue.wake:
			w.health.timed(w.flush)
			reserved.Reset(time.Until(w.heads.kept.Until))
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

// maintain tries again what has failed: to keep the head, and to write.
func (w *writer) maintain() {
	w.release()
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

// append links lines and writes them. It returns the number of lines that are not written.
func (w *writer) append(lines []byte) (lost int, err error) {
	const linkSize = 250 // bytes, about
	n := bytes.Count(lines, []byte{'\n'})
	size := len(lines) + n*linkSize
	w.reserve(n)
	defer w.out.unlock()
	if err := w.out.prepare(size); err != nil {
		return n, err
	}
	untold := w.health.untold.Swap(0)
	link := Link{Lost: int(untold)}
	switch {
	case w.out.isEmpty():
		link.Begins = true
	case w.out.fresh && w.chain.number > 0:
		link.Moved = true
	}
	text := slices.Grow(w.linked[:0], size)
	if w.linked = text; cap(text) > 1<<20 {
		w.linked = nil // memory of a burst
	}
	before, after := w.chain, make([]chain, 0, n) // after each line
	for line := range bytes.Lines(lines) {
		text = w.chain.link(text, line, link)
		after, link = append(after, w.chain), Link{}
	}
	written, err := w.out.write(text)
	whole := bytes.Count(text[:written], []byte{'\n'})
	if whole == 0 {
		w.chain = before
		w.health.untold.Add(untold)
		return n, err
	}
	w.chain = after[whole-1]
	w.last, w.out.fresh = time.Now(), false
	return n - whole, err
}

// probe finds out whether records can be written.
func (w *writer) probe() {
	defer w.out.unlock()
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

// close ends the chain, after run.
func (w *writer) close() error {
	if w.chain.number > 0 || w.heads.kept.Chain != "" {
		w.keepHead(Head{Ended: true})
		w.heads.unlock()
	}
	if w.chain.number > 0 {
		w.log.Info("the audit log's chain ends here", "chain", w.chain.id, "number", w.chain.number, "hash", w.chain.hash)
	}
	if n := w.health.untold.Load(); n > 0 {
		w.log.Error("the last records of the audit log could not be written", "lost", n)
	}
	return w.out.close()
}

// To bound what can be added to the records of a killed gate, each head states how many
// records may follow it, and until when. The gate keeps a new head before it writes more.

// reserve keeps a head that permits n more records, unless the last one does.
func (w *writer) reserve(n int) {
	number, now, kept := w.chain.number, time.Now(), &w.heads.kept
	if number+int64(n) <= kept.Limit && !now.After(kept.Until) {
		return
	}
	// Twice the records since the last head, so that a busy gate keeps one head a second.
	count := max(minReserved, 2*(number-kept.Number+int64(n)))
	w.keepHead(Head{Limit: number + count, Until: now.Add(reserveTime).UTC()})
}

// release keeps a head that permits no more records, after the time of the last one.
func (w *writer) release() {
	number, kept := w.chain.number, &w.heads.kept
	if number > 0 && !time.Now().Before(kept.Until) && (kept.Limit > number || kept.Number < number) {
		w.keepHead(Head{Limit: number})
	}
}

// keepHead keeps the head of the chain, after the disk has its records.
func (w *writer) keepHead(h Head) {
	// Each try syncs the disk, so it is not tried again soon after a failure.
	if w.heads.dir == "" || time.Since(w.heads.failed) < reserveTime && !h.Ended {
		return
	}
	if w.chain.number > w.heads.kept.Number {
		w.out.sync()
	}
	h.File, h.Stream = w.out.path, w.out.stream
	h.Chain, h.Number, h.Hash, h.Time = w.chain.id, w.chain.number, w.chain.hash, w.last.UTC()
	if h.Number == 0 {
		h.Time = time.Now().UTC()
	}
	w.heads.write(h)
}
