package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/evidence"
	"robotsgate/internal/terminal"
)

// Audit reads audit logs.
type Audit struct {
	Configured
	Filters    `group:"Only some of the records (these options combine):"`
	Replay     bool     `help:"Decide every record again from the evidence that is kept, and print each difference."`
	Verify     bool     `help:"Check that no record has been changed, removed or added."`
	Strict     bool     `help:"With --verify: notes, such as of files that were rotated away, are faults."`
	Key        []string `placeholder:"VKEY" sep:"none" help:"With --verify: the verifier key of a log, as its operator publishes it; without one, that of -c or of data_dir; may be repeated."`
	Witness    []string `placeholder:"VKEY" sep:"none" help:"With --verify: the verifier key of a witness that must have cosigned each log; may be repeated."`
	Checkpoint []string `placeholder:"FILE" sep:"none" help:"With --verify: a checkpoint that you have kept, with which the log must agree; may be repeated."`
	Suggest    bool     `name:"suggest-overrides" help:"Print the overrides that would permit again what the gate has sent, and deny all else."`
	Paths      int      `placeholder:"N" help:"With --suggest-overrides: tell paths apart by their first N segments."`
	Follow     bool     `help:"Print the last 10 records, or with --since those since then, and each new one, until an interrupt."`
	Top        int      `default:"20" placeholder:"N" help:"How many hosts, rules and errors are listed."`
	JSON       bool     `help:"Print JSON: the records that are selected, one a line; or the summary, if no option selects records."`
	File       []string `arg:"" optional:"" name:"FILE" help:"Audit logs, as they are or gzipped, in any order; - is standard input."`
}

// An auditReport collects the lines of audit logs.
type auditReport interface {
	Line(*audit.Line)
	// result is called after the last line. Its value is printed as JSON under a name, or with
	// the template of that name. Failed says that something differs.
	result() (name string, value any, failed bool)
}

// Run reads the files once, for all reports.
func (a *Audit) Run(ctx context.Context, s console.Streams) error {
	if len(a.File) == 0 {
		return errors.New("which audit log? The key log.audit names it; without one, the status page has the latest refusals")
	}
	if err := a.checkOptions(); err != nil {
		return err
	}
	filter, err := a.filter(time.Now())
	if err != nil {
		return err
	}
	named := map[string]bool{}
	a.File = slices.DeleteFunc(a.File, func(file string) bool { // each record of a file that is named twice would count twice
		file = filepath.Clean(file)
		again := named[file]
		named[file] = true
		return again
	})
	if err := canOpen(a.File); err != nil {
		return err
	}
	line := terminal.NewStatusLine(s.Err, os.Getenv)
	out := bufio.NewWriter(line.Above(s.Out)) // keeps its first error
	s.Out = out
	if a.Follow {
		return a.follow(ctx, s, out, filter)
	}
	if !a.Replay && !a.Suggest && (a.ID != "" || a.JSON && a.given()) {
		return a.listRecords(s, out, filter)
	}
	return a.report(s, out, line, filter)
}

// checkOptions reports options that don't go together.
func (a *Audit) checkOptions() error {
	switch {
	case a.Top < 0:
		return errors.New("--top: can't be negative")
	case !a.Verify && (a.Strict || len(a.Key)+len(a.Witness)+len(a.Checkpoint) > 0):
		return errors.New("--strict, --key, --witness and --checkpoint need --verify")
	case a.Verify && a.givenForVerify():
		return errors.New("--verify checks whole logs: leave out the options that select records")
	case a.Paths < 0:
		return errors.New("--paths: can't be negative")
	case !a.Suggest && a.Paths > 0:
		return errors.New("--paths needs --suggest-overrides")
	case a.Suggest && (a.Verify || a.Replay || a.Follow || a.JSON):
		return errors.New("--suggest-overrides goes with none of --verify, --replay, --follow and --json: it prints YAML")
	case a.Follow && (a.Verify || a.Replay):
		return errors.New("--follow goes with neither --verify nor --replay")
	case a.Follow && slices.Contains(a.File, "-"):
		return errors.New("--follow needs the name of a log: - is printed as it comes with --json and an option that selects records, such as --since 0s")
	case a.Follow && len(a.File) != 1:
		return errors.New("--follow needs the name of one log, that of log.audit; it goes on when the gate rotates it")
	}
	return nil
}

// report prints the reports that the options ask for.
func (a *Audit) report(s console.Streams, out *bufio.Writer, line *terminal.StatusLine, filter *audit.Filter) error {
	reports, err := a.reports(s)
	if err != nil {
		return err
	}
	done := console.NewProgress(nil)
	stop := line.Follow(done.Text, false)
	readErr := a.lines(s, filter, reports[0], done, func(l *audit.Line) {
		for _, r := range reports {
			r.Line(l)
		}
	})
	stop()
	if errors.Is(readErr, errNotLog) {
		return cmp.Or(out.Flush(), readErr)
	}
	failed, values := false, map[string]any{}
	for _, r := range reports {
		name, value, differs := r.result()
		values[name], failed = value, failed || differs
		if a.JSON {
			continue
		}
		if err := printReport(out, name, value); err != nil {
			return err
		}
	}
	if a.JSON {
		_ = console.JSON(out, values)
	}
	if err := cmp.Or(out.Flush(), readErr); err != nil {
		return err
	}
	if failed {
		return console.Exit(1)
	}
	return nil
}

// errNotLog says that a file has lines, but no record. For --verify that is a fault of the log.
var errNotLog = errors.New("not an audit log: no line is a record of a request")

// lines calls each for every line of the files that has a record which the filter selects, or none. A verifier gets
// all lines. Done counts them.
func (a *Audit) lines(s console.Streams, filter *audit.Filter, first auditReport, done *console.Progress, each func(*audit.Line)) error {
	v, verifies := first.(*verifyReport)
	logs := map[string]bool{} // by file with lines: it has a record
	err := audit.Texts(a.File, s.In, func(file string, text evidence.Text) {
		done.Lines.Add(1)
		if verifies {
			v.Verifier.Line(file, text)
		}
		if verifies && !a.Replay {
			return // parsing a line takes longer than verifying it
		}
		l := audit.ParseLine(file, text)
		if l == nil {
			return
		}
		logs[file] = logs[file] || l.Record != nil || l.Half()
		if l.Record != nil && !filter.Selects(l.Record) {
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

// canOpen reports the files that can't be opened. It does not open a pipe, since that would wait for
// its writer.
func canOpen(files []string) error {
	var errs []error
	for _, file := range files {
		info, err := os.Stat(file)
		switch {
		case file == "-" || err == nil && !info.Mode().IsRegular() && !info.IsDir():
			continue
		case err == nil && info.IsDir():
			errs = append(errs, fmt.Errorf("%s is a folder: name the logs in it", file))
			continue
		}
		f, err := os.Open(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("%s: no such file: the key log.audit of the gate's configuration names its audit log", file))
		case err != nil:
			errs = append(errs, err)
		default:
			f.Close()
		}
	}
	return errors.Join(errs...)
}

// reports returns the reports that the options ask for.
func (a *Audit) reports(s console.Streams) (all []auditReport, err error) {
	c, err := a.load()
	if err != nil {
		return nil, err
	}
	if a.Suggest {
		return []auditReport{a.suggestReport(c, s)}, nil
	}
	if !a.Replay && !a.Verify {
		return []auditReport{&sumReport{Summary: &audit.Summary{}, top: a.Top, s: s}}, nil // needs no data_dir
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
