package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"

	"robotsgate/internal/console"
	"robotsgate/internal/datadir"
	"robotsgate/internal/evidence/bundle"
	"robotsgate/internal/terminal"
)

// EvidenceCheck checks a bundle.
type EvidenceCheck struct {
	Key     []string `placeholder:"VKEY" sep:"none" help:"The verifier key of the log, as its operator publishes it; without one, that which the bundle names, and which you must compare; may be repeated."`
	Witness []string `placeholder:"VKEY" sep:"none" help:"The verifier key of a witness that must have cosigned each log; may be repeated."`
	JSON    bool     `help:"Print JSON."`
	File    string   `arg:"" name:"BUNDLE" help:"The zip file."`
}

// Run checks the bundle.
func (c *EvidenceCheck) Run(s console.Streams) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file: name the zip file", c.File)
	}
	if err != nil {
		return err
	}
	done := console.NewProgress(nil)
	stop := terminal.NewStatusLine(s.Err, os.Getenv).Follow(done.Text, false)
	found, err := bundle.Check(f, info.Size(), bundle.CheckOptions{
		Keys: c.Key, Witnesses: c.Witness, Parse: datadir.Settings, Progress: func() { done.Lines.Add(1) },
	})
	stop()
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	out := bufio.NewWriter(s.Out)
	if c.JSON {
		err = console.JSON(out, found)
	} else {
		err = printReport(out, "bundle", found)
	}
	if c.JSON && !found.KeyGiven && len(found.SignedBy) > 0 {
		s.Note("the key is the one that the bundle names: compare it with the one that the operator publishes, or give that with --key")
	}
	if err := cmp.Or(err, out.Flush()); err != nil {
		return err
	}
	if !found.OK() {
		return console.Exit(1)
	}
	return nil
}

// kindsOf returns the kinds of findings of which more were found than are listed, with their numbers.
func moreFindings(c *bundle.Checked) (all []string) {
	listed := map[string]int{}
	for _, f := range c.Findings {
		listed[f.Kind]++
	}
	for kind, n := range c.Kinds {
		if more := n - listed[kind]; more > 0 {
			all = append(all, fmt.Sprintf("%s: %d more", kind, more))
		}
	}
	slices.Sort(all)
	return all
}
