package audit

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"robotsgate/internal/logtext"
)

// maxWrite is how long a write may take before the log counts as failing.
const maxWrite = 5 * time.Second

var errTooSlow = errors.New("it takes nothing: its disk, or the reader of its pipe, is too slow")

// health is whether entries can be written, and how many could not be. It is safe for
// concurrent use.
type health struct {
	log      *slog.Logger
	failing  atomic.Pointer[error] // why entries can't be written; nil: they can
	writing  atomic.Int64          // when the write in progress began, in Unix nanoseconds; 0: there is none
	lost     atomic.Int64          // entries, since the start
	untold   atomic.Int64          // lost entries that no written entry states yet
	reported logtext.Minute        // of losses
}

func (h *health) err() error {
	if err := h.failing.Load(); err != nil {
		return *err
	}
	if began := h.writing.Load(); began != 0 && time.Now().UnixNano()-began > int64(maxWrite) {
		return errTooSlow
	}
	return nil
}

// timed calls f, which may hang.
func (h *health) timed(f func()) {
	h.writing.Store(time.Now().UnixNano())
	f()
	h.writing.Store(0)
}

// lose counts entries that are not written, and reports that once a minute.
func (h *health) lose(n int, err error) {
	h.failing.Store(&err)
	h.lost.Add(int64(n))
	h.untold.Add(int64(n))
	if h.reported.Add() > 0 {
		h.report(err)
	}
}

func (h *health) report(err error) {
	h.log.Error("the audit log can't be written; check its disk and permissions, or the reader of its pipe", "error", err, "lost", h.lost.Load())
}

// works notes that entries can be written.
func (h *health) works() {
	if was := h.failing.Swap(nil); was != nil {
		h.log.Info("the audit log is written again", "lost", h.lost.Load())
	}
}
