package auditreport

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
)

// lastShown is the number of past entries that --follow begins with.
const lastShown = 10

// Follow prints the entries that the filter selects, as they are written, until the process receives
// SIGINT or SIGTERM.
func Follow(ctx context.Context, s console.Streams, a Options) error {
	s, out, _ := buffered(s)
	if info, err := os.Stat(a.File[0]); err != nil || !info.Mode().IsRegular() {
		return cmp.Or(err, errors.New("--follow needs a file, not a pipe"))
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process, even if nothing reads its output
	w := &watcher{
		s: s, filter: a.Filter, out: out, begun: !a.Filter.Since.IsZero(),
		printer: entryPrinter{out: out, json: a.JSON, story: a.Filter.ID != ""},
	}
	err := audit.Follow(ctx, a.File[0], w.line, w.pause)
	if errors.Is(err, errNotLog) {
		err = fmt.Errorf("%s: %w", a.File[0], err)
	}
	return cmp.Or(err, out.Flush())
}

// A watcher prints the entries of a log that is followed.
type watcher struct {
	s       console.Streams
	filter  *audit.Filter
	out     *bufio.Writer
	printer entryPrinter

	begun   bool         // the entries from now on are printed
	last    []audit.Line // the last ones before
	isLog   bool         // there has been an entry
	invalid invalidLines
	err     error
}

func (w *watcher) line(l *audit.Line) {
	w.isLog = w.isLog || l.Entry != nil
	switch {
	case l.Entry == nil:
		w.invalid.add(l)
	case !w.filter.Selects(l.Entry):
	case w.begun:
		w.print(l)
	default:
		kept := *l
		kept.Text = bytes.Clone(l.Text)
		if len(w.last) == lastShown {
			w.last = append(w.last[:0], w.last[1:]...)
		}
		w.last = append(w.last, kept)
	}
}

func (w *watcher) print(l *audit.Line) {
	if w.err == nil {
		w.err = w.printer.print(l)
	}
}

// pause is called when all lines that are there have been read.
func (w *watcher) pause() error {
	if len(w.invalid) > 0 && !w.isLog {
		return errNotLog
	}
	w.invalid.warn(w.s)
	w.invalid, w.begun = nil, true
	for _, l := range w.last {
		w.print(&l)
	}
	w.last = nil
	return cmp.Or(w.err, w.out.Flush())
}
