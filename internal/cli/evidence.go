package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/datadir"
	"robotsgate/internal/evidence/bundle"
)

// Evidence shows outsiders what the gate has done.
type Evidence struct {
	Key    EvidenceKey    `cmd:"" help:"Print the verifier key of the gate's audit log, to publish."`
	Bundle EvidenceBundle `cmd:"" help:"Make a zip file of records that anyone can check, with their proofs and their evidence."`
	Check  EvidenceCheck  `cmd:"" help:"Check a bundle: signatures, proofs, hashes, and each decision."`
	Proof  EvidenceProof  `cmd:"" help:"Print the proof that one record is in its log."`
}

// EvidenceKey prints the verifier key.
type EvidenceKey struct {
	Configured
}

// Run prints the key.
func (k *EvidenceKey) Run(s console.Streams) error {
	c, err := k.load()
	if err != nil {
		return err
	}
	signer, err := datadir.Signer(c)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, signer.Key())
	return err
}

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
	done, stop := s.Progress(nil)
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

// EvidenceProof prints the proof of one record.
type EvidenceProof struct {
	Config []string `short:"c" placeholder:"FILE" sep:"none" help:"Configuration file of the gate that wrote the logs; may be repeated for the gates of a fleet."`
	ID     string   `required:"" placeholder:"ID" help:"The request, by the id that a refusal and its record name."`
	File   []string `arg:"" optional:"" name:"LOG" help:"Audit logs, with all rotated files, as they are or gzipped, in any order; - is standard input."`
}

// Run prints the proof.
func (p *EvidenceProof) Run(s console.Streams) error {
	if len(p.File) == 0 {
		return errNoLogs
	}
	g, err := loadGates(p.Config)
	if err != nil {
		return err
	}
	c, logs, err := collect(s, g, &audit.Filter{ID: p.ID}, p.File)
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Selected() == 0 {
		s.Note("no record has the id %s: name the rotated files of the log too", p.ID)
		return console.Exit(1)
	}
	text, err := c.Proof(logs)
	if errors.Is(err, bundle.ErrUncovered) {
		s.Note("%v", err)
		return console.Exit(1)
	}
	if err != nil {
		return err
	}
	_, err = s.Out.Write(text)
	return err
}
