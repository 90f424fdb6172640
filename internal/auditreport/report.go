// Package auditreport prints what audit logs say: [Print] a summary, a replay or a verification,
// [PrintRecord] a record in words.
package auditreport

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
)

// Where to change what.
//
//	what is printed for people:
//		a template in output
//	what is counted in a summary:
//		internal/audit/summary.go

// Options are those of the command.
type Options struct {
	ID         string   `placeholder:"ID" help:"Only the request with this id, as a refusal names it: prints all about it."`
	Replay     bool     `help:"Decide every record again from the evidence that is kept, and print each difference."`
	Verify     bool     `help:"Check that no record has been changed, removed or added."`
	Strict     bool     `help:"With --verify: notes, such as of records behind the last checkpoint, are faults."`
	Key        string   `placeholder:"VKEY" help:"With --verify: the verifier key of the log, as its operator publishes it; without one, that of -c or of data_dir."`
	Checkpoint string   `placeholder:"FILE" help:"With --verify: a checkpoint that you have kept, with which the log must agree."`
	From       string   `placeholder:"FILE" help:"With --verify: a copy of audit-checkpoint, from which on the log is verified."`
	File       []string `arg:"" optional:"" name:"FILE" help:"Audit logs, as they are or gzipped, in any order; - is standard input."`
}

// Check reports options that don't go together.
func (a *Options) Check() error {
	switch {
	case !a.Verify && (a.Strict || a.Key+a.Checkpoint+a.From != ""):
		return errors.New("--strict, --key, --checkpoint and --from need --verify")
	case a.Verify && a.ID != "":
		return errors.New("--verify checks whole logs: leave out --id")
	}
	return nil
}

// A report collects the lines of audit logs.
type report interface {
	Line(*audit.Line)
	// result is called after the last line. Its value is printed with the template of the name. Failed says that something differs.
	result() (name string, value any, failed bool)
}

// buffered returns s with a buffer, which keeps its first error.
func buffered(s console.Streams) (console.Streams, *bufio.Writer) {
	out := bufio.NewWriter(s.Out)
	s.Out = out
	return s, out
}

// Print reads the files once, and prints the reports that the options ask for.
func Print(s console.Streams, c *gate.Config, a Options) error {
	_, terminal := console.Terminal(s.Out)
	s, out := buffered(s)
	reports, err := a.reports(c, s, terminal)
	if err != nil {
		return err
	}
	if a.Verify {
		a.File = audit.Ordered(a.File)
	}
	var done atomic.Int64
	stop := s.Progress(&done, size(a.File))
	v, _ := reports[0].(*verifyReport)
	readErr := a.lines(s, v, &done, func(l *audit.Line) {
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
		name, value, differs := r.result()
		failed = failed || differs
		if err := printReport(out, name, value); err != nil {
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
func (a *Options) lines(s console.Streams, v *verifyReport, done *atomic.Int64, each func(*audit.Line)) error {
	logs := map[string]bool{} // by file with lines: it has an entry
	err := audit.Texts(a.File, s.In, func(file string, text evidence.Text) {
		done.Add(int64(len(text.Text)) + 1)
		if v != nil {
			v.Verifier.Line(file, text)
			if !a.Replay {
				return // parsing a line takes longer than verifying it
			}
		}
		l := audit.ParseLine(file, text)
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
		if isLog, hasLines := logs[file]; hasLines && !isLog && !a.Verify {
			err = errors.Join(err, fmt.Errorf("%s: %w", file, errNotLog))
		}
	}
	return err
}

// reports returns the reports that the options ask for.
func (a *Options) reports(c *gate.Config, s console.Streams, terminal bool) (all []report, err error) {
	if !a.Replay && !a.Verify {
		return []report{&sumReport{Summary: &audit.Summary{}, terminal: terminal, s: s}}, nil // needs no data_dir
	}
	if a.Verify {
		v, err := a.verifyReport(c)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	if a.Replay {
		r, err := a.newReplayReport(c, s)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}
