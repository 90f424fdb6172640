package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/auditreport"
	"robotsgate/internal/console"
	"robotsgate/internal/datadir"
	"robotsgate/internal/evidence"
	"robotsgate/internal/evidence/bundle"
	"robotsgate/internal/gate"
	"robotsgate/internal/replay"
	"robotsgate/internal/wholefile"
)

// EvidenceBundle makes a bundle.
type EvidenceBundle struct {
	Config              []string `short:"c" placeholder:"FILE" sep:"none" help:"Configuration file of the gate that wrote the logs; may be repeated for the gates of a fleet."`
	auditreport.Filters `group:"Only some of the records (these options combine):"`
	Title               string   `placeholder:"TEXT" help:"The title of the report."`
	Output              string   `short:"o" required:"" placeholder:"OUT.zip" help:"The zip file to make."`
	File                []string `arg:"" optional:"" name:"LOG" help:"Audit logs, with all rotated files, as they are or gzipped, in any order; - is standard input."`
}

// Run makes the bundle.
func (b *EvidenceBundle) Run(s console.Streams) error {
	if len(b.File) == 0 {
		return errNoLogs
	}
	filter, err := b.Parse(time.Now())
	if err != nil {
		return err
	}
	for _, file := range b.File {
		if one, err := os.Stat(file); err == nil {
			if other, err := os.Stat(b.Output); err == nil && os.SameFile(one, other) {
				return fmt.Errorf("-o %s is one of the logs: name another file", b.Output)
			}
		}
	}
	g, err := loadGates(b.Config)
	if err != nil {
		return err
	}
	opened, err := g.Open()
	if err != nil {
		return err
	}
	var kept bundle.Several
	for _, e := range opened {
		defer e.Close()
		kept = append(kept, e)
	}
	c, logs, err := collect(s, g, filter, b.File)
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Selected() == 0 {
		s.Note("no record fits the options: nothing is made")
		return console.Exit(1)
	}
	done, stop := s.Progress(nil)
	var made *bundle.Made
	err = wholefile.WriteFunc(b.Output, func(f *os.File) (err error) {
		made, err = c.Write(f, bundle.Options{
			Title: cmp.Or(b.Title, "Requests of a crawler, and what decided them"), Selection: b.Words(filter), Program: version(), Made: time.Now(),
			Logs: logs, Keys: g.Keys, KeyTexts: g.KeyTexts, Evidence: kept, Parse: datadir.Settings, Progress: func() { done.Lines.Add(1) },
		})
		return err
	})
	stop()
	if errors.Is(err, bundle.ErrUncovered) {
		s.Note("%v: nothing is made", err)
		return console.Exit(1)
	}
	if err != nil {
		return err
	}
	return b.report(s, made)
}

// report says what is in the bundle.
func (b *EvidenceBundle) report(s console.Streams, m *bundle.Made) error {
	if m.Uncovered > 0 {
		s.Note("left out, since no checkpoint covers them yet: %s", console.Plural(m.Uncovered, "record"))
	}
	for _, o := range replay.Outcomes {
		if text := m.Examples[o]; text != "" {
			s.Warn("%s: %d, first %s", o, m.Outcomes[o], text)
		}
	}
	s.Note("configurations in the bundle name other sites and crawlers, and records name clients' addresses. They can't be cut without breaking the proofs: see whom you give it to")
	_, err := fmt.Fprintf(s.Out, "%s: %s of %s, %d decided again alike\n", b.Output, console.Plural(m.Entries, "record"), console.Plural(len(m.Logs), "log"), m.Outcomes[replay.Same])
	return err
}

// loadGates loads the configurations of the gates that have written the logs; without one the defaults hold.
func loadGates(files []string) (*datadir.Gates, error) {
	if len(files) == 0 {
		files = []string{""}
	}
	var configs []*gate.Config
	for _, file := range files {
		c, err := Configured{file}.load()
		if err != nil {
			return nil, err
		}
		configs = append(configs, c)
	}
	return datadir.ReadGates(configs)
}

// collect verifies whole logs and selects records. The caller closes the Collector. A log with a fault is console.Exit(1).
func collect(s console.Streams, g *datadir.Gates, filter *audit.Filter, files []string) (*bundle.Collector, []evidence.Report, error) {
	if err := canOpen(files); err != nil {
		return nil, nil, err
	}
	c, err := bundle.NewCollector(filter)
	if err != nil {
		return nil, nil, err
	}
	v := evidence.NewVerifier(evidence.VerifyOptions{Keys: g.Keys, Known: g.Known, Leaf: c.Leaf, Node: c.Node})
	done, stop := s.Progress(nil)
	var lineErr error
	readErr := audit.Texts(byTime(files), s.In, func(file string, line evidence.Text) {
		v.Line(file, line)
		if err := c.Line(line.Text); lineErr == nil {
			lineErr = err
		}
		done.Lines.Add(1)
	})
	v.End()
	stop()
	err = cmp.Or(lineErr, readErr)
	for _, text := range v.Notes {
		s.Note("note: %s", text)
	}
	for _, text := range v.Faults {
		s.Note("%s", text)
	}
	if err == nil && v.Faulty > 0 {
		s.Note("a log that does not verify proves nothing, so nothing is made of it: audit --verify says more")
		err = console.Exit(1)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, v.Logs, nil
}

// byTime sorts logs by the time of their first line, so that records are in their order in a bundle. One that can't be
// read stays where it is, as does standard input.
func byTime(files []string) []string {
	times := map[string]time.Time{}
	for _, file := range files {
		times[file] = firstTime(file)
	}
	return slices.SortedStableFunc(slices.Values(files), func(a, b string) int { return times[a].Compare(times[b]) })
}

func firstTime(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() { // what is read from a pipe can't be read again
		return time.Time{}
	}
	var first struct{ Time time.Time }
	for line, err := range evidence.Lines(file, nil) {
		if err == nil {
			_ = json.Unmarshal(line.Text, &first) // the verifier reports a line that is none
		}
		break
	}
	return first.Time
}

var errNoLogs = fmt.Errorf("which audit log? The key log.audit of the gate's configuration names it; name its rotated files too")
