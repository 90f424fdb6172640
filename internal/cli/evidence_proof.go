package cli

import (
	"errors"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/evidence/bundle"
)

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
	c, logs, err := g.collect(s, &audit.Filter{ID: p.ID}, p.File)
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
