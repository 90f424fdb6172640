package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/datadir"
	"robotsgate/internal/evidence/bundle"
	"robotsgate/internal/replay"
	"robotsgate/internal/terminal"
)

// EvidenceBundle makes a bundle.
type EvidenceBundle struct {
	Config  []string `short:"c" placeholder:"FILE" sep:"none" help:"Configuration file of the gate that wrote the logs; may be repeated for the gates of a fleet."`
	Filters `group:"Only some of the records (these options combine):"`
	Title   string   `placeholder:"TEXT" help:"The title of the report."`
	Output  string   `short:"o" required:"" placeholder:"OUT.zip" help:"The zip file to make."`
	File    []string `arg:"" optional:"" name:"LOG" help:"Audit logs, with all rotated files, as they are or gzipped, in any order; - is standard input."`
}

// Run makes the bundle.
func (b *EvidenceBundle) Run(s console.Streams) error {
	if len(b.File) == 0 {
		return errNoLogs
	}
	filter, err := b.filter(time.Now())
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
	kept, closeAll, err := g.openEvidence(b.Config)
	if err != nil {
		return err
	}
	defer closeAll()
	c, logs, err := g.collect(s, filter, b.File)
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Selected() == 0 {
		s.Note("no record fits the options: nothing is made")
		return console.Exit(1)
	}
	done := console.NewProgress(nil)
	stop := terminal.NewStatusLine(s.Err, os.Getenv).Follow(done.Text, false)
	var made *bundle.Made
	err = writeWhole(b.Output, func(f *os.File) (err error) {
		made, err = c.Write(f, bundle.Options{
			Title: cmp.Or(b.Title, "Requests of a crawler, and what decided them"), Selection: selectionText(b.Filters, filter), Program: version(), Made: time.Now(),
			Logs: logs, Keys: g.keys, KeyTexts: g.texts, Evidence: kept, Parse: datadir.Settings, Progress: func() { done.Lines.Add(1) },
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
	_, err := fmt.Fprintf(s.Out, "%s: %s of %s, %d decided again alike\n", b.Output, console.Plural(m.Records, "record"), console.Plural(len(m.Logs), "log"), m.Outcomes[replay.Same])
	return err
}

// selectionText says in words which records the options select.
func selectionText(o Filters, f *audit.Filter) (all []string) {
	add := func(given bool, format string, args ...any) {
		if given {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(o.Host != "", "requests to the host %s", o.Host)
	add(o.URL != "", "requests for %s", o.URL)
	add(o.Crawler != "", "requests of the crawler %s", o.Crawler)
	add(o.Gate != "", "requests through the gate %s", o.Gate)
	add(o.Reason != "", "decisions for the reason %s", o.Reason)
	add(o.ID != "", "the request %s", o.ID)
	add(!f.Since.IsZero(), "since %s UTC", console.UTC(f.Since))
	add(!f.Until.IsZero(), "before %s UTC", console.UTC(f.Until))
	add(o.Denied, "only what was refused, or would have been")
	return all
}

// writeWhole writes a file that is there as a whole, or not at all.
func writeWhole(path string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = write(f)
	if err := cmp.Or(err, f.Sync(), f.Close()); err != nil {
		f.Close()
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}
