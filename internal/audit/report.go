package audit

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"robotsgate/internal/console"
	"robotsgate/internal/evidence"
)

// A Reading says which logs are read, and what is printed of them: without more than File a summary.
type Reading struct {
	File   []string                // as they are or gzipped, in any order; "-" is standard input
	ID     string                  // only the request with this id; without Replay all about it
	Verify *evidence.VerifyOptions // check that no record has been changed, removed or added; nil: do not
	Strict bool                    // with Verify: notes are faults
	Replay *Replay                 // decide every record again, and print each difference; nil: do not
}

// A report collects the lines of audit logs.
type report interface {
	Line(*Line)
	// result is called after the last line. It returns the template that prints the report. Failed says that something differs.
	result() (template string, failed bool)
}

// buffered returns s with a buffer, which keeps its first error.
func buffered(s console.Streams) (console.Streams, *bufio.Writer) {
	out := bufio.NewWriter(s.Out)
	s.Out = out
	return s, out
}

// Print reads the files once, and prints what is asked for.
func (a *Reading) Print(s console.Streams) error {
	if a.ID != "" && a.Replay == nil {
		return a.printRecord(s)
	}
	_, terminal := console.Terminal(s.Out)
	s, out := buffered(s)
	reports := a.reports(s, terminal)
	if a.Verify != nil {
		a.File = ordered(a.File)
	}
	var done atomic.Int64
	stop := s.Progress(&done, size(a.File))
	v, _ := reports[0].(*verifyReport)
	readErr := a.lines(s, v, &done, func(l *Line) {
		for _, r := range reports {
			r.Line(l)
		}
	})
	stop()
	if errors.Is(readErr, errNotLog) {
		return cmp.Or(out.Flush(), readErr)
	}
	if v != nil {
		if err := v.incomplete(); err != nil {
			return cmp.Or(out.Flush(), err)
		}
	}
	failed := false
	for _, r := range reports {
		template, differs := r.result()
		failed = failed || differs
		if err := printReport(out, template, r); err != nil {
			return err
		}
	}
	if err := cmp.Or(out.Flush(), readErr); err != nil {
		return err
	}
	if failed {
		return console.Exit(1)
	}
	return nil
}

// size returns the number of bytes of files, 0 if it is not known before they are read, as of a gzipped one.
func size(files []string) (sum int64) {
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() || strings.HasSuffix(name, ".gz") {
			return 0
		}
		sum += info.Size()
	}
	return sum
}

// errNotLog says that a file has lines, but no entry. For --verify that is a fault of the log.
var errNotLog = errors.New("not an audit log: no line is a record of a request")

// lines calls each for every line of the files that has a record, with --id only that one, or none. V, unless it is nil,
// gets all lines. Done counts their bytes.
func (a *Reading) lines(s console.Streams, v *verifyReport, done *atomic.Int64, each func(*Line)) error {
	logs := map[string]bool{} // by file with lines: it has an entry
	err := readTexts(a.File, s.In, func(file string, text evidence.Text) {
		done.Add(int64(len(text.Text)) + 1)
		if v != nil {
			v.Verifier.Line(file, text)
			if a.Replay == nil {
				return // parsing a line takes longer than verifying it
			}
		}
		l := parseLine(file, text)
		if l == nil {
			return
		}
		logs[file] = logs[file] || l.Record != nil || l.Half()
		if l.Record != nil && a.ID != "" && !strings.EqualFold(a.ID, l.Record.ID) {
			return
		}
		each(l)
	})
	for _, file := range a.File {
		if isLog, hasLines := logs[file]; hasLines && !isLog && a.Verify == nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", file, errNotLog))
		}
	}
	return err
}

// reports returns the reports that are asked for.
func (a *Reading) reports(s console.Streams, terminal bool) (all []report) {
	if a.Verify != nil {
		all = append(all, &verifyReport{evidence.NewVerifier(*a.Verify), *a.Verify, a.Strict})
	}
	if a.Replay != nil {
		all = append(all, &replayReport{Replay: a.Replay, s: s, id: a.ID})
	}
	if all == nil {
		all = append(all, &sumReport{s: s, terminal: terminal})
	}
	return all
}
