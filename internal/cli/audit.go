package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
	"robotsgate/internal/record"
	"robotsgate/internal/replay"
)

// Audit reads audit logs.
type Audit struct {
	Configured
	ID         string   `placeholder:"ID" help:"Only the request with this id, as a refusal names it: prints all about it."`
	Replay     bool     `help:"Decide every record again from the evidence that is kept, and print each difference."`
	Verify     bool     `help:"Check that no record has been changed, removed or added."`
	Strict     bool     `help:"With --verify: notes, such as of records behind the last checkpoint, are faults."`
	Key        string   `placeholder:"VKEY" help:"With --verify: the verifier key of the log, as its operator publishes it; without one, that of -c or of data_dir."`
	Checkpoint string   `placeholder:"FILE" help:"With --verify: a checkpoint that you have kept, with which the log must agree."`
	From       string   `placeholder:"FILE" help:"With --verify: a copy of audit-checkpoint, from which on the log is verified."`
	File       []string `arg:"" optional:"" name:"FILE" help:"Audit logs, as they are or gzipped, in any order; - is standard input."`
	Data       string   `placeholder:"DIR" help:"With --replay: a folder with snapshots and configurations, such as a copy of another gate's data_dir."`
	PublicKey  bool     `name:"public-key" help:"Print the verifier key of the gate's audit log, to publish."`
}

// Run reads the files once, for all reports.
func (a *Audit) Run(ctx context.Context, s console.Streams) error {
	if a.PublicKey {
		return a.printKey(s)
	}
	if len(a.File) == 0 {
		return errors.New("which audit log? The key log.audit names it; without one, the status page has the latest refusals")
	}
	switch {
	case !a.Verify && (a.Strict || a.Key+a.Checkpoint+a.From != ""):
		return errors.New("--strict, --key, --checkpoint and --from need --verify")
	case a.Verify && a.ID != "":
		return errors.New("--verify checks whole logs: leave out --id")
	case a.Data != "" && !a.Replay:
		return errors.New("--data needs --replay")
	}
	var errs []error
	named := map[string]bool{}
	a.File = slices.DeleteFunc(a.File, func(file string) bool { // each record of a file that is named twice would count twice
		switch info, err := os.Stat(file); {
		case file == "-":
		case err != nil:
			errs = append(errs, fmt.Errorf("%w: the key log.audit of the gate's configuration names its audit log", err))
		case info.IsDir():
			errs = append(errs, fmt.Errorf("%s is a folder: name the logs in it", file))
		}
		file = filepath.Clean(file)
		again := named[file]
		named[file] = true
		return again
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r := audit.Reading{File: a.File, ID: a.ID, Strict: a.Strict}
	if !a.Verify && !a.Replay {
		return r.Print(s) // needs no data_dir
	}
	c, err := a.load()
	if err != nil {
		return err
	}
	if a.Data != "" {
		c.DataDir = a.Data
	}
	if a.Verify {
		if r.Verify, err = a.verifyOptions(c); err != nil {
			return err
		}
	}
	if a.Replay {
		if r.Replay, err = openReplay(c, s); err != nil {
			return err
		}
	}
	return r.Print(s)
}

// verifyOptions returns what the logs are checked against.
func (a *Audit) verifyOptions(c *gate.Config) (o *evidence.VerifyOptions, err error) {
	o = &evidence.VerifyOptions{Place: record.ReadPlace}
	checkpoint := a.Checkpoint
	if a.Key != "" {
		if o.Key, err = evidence.ParseKey(a.Key); err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
	} else {
		signer, err := gate.ReadSigner(c)
		if err != nil {
			return nil, fmt.Errorf("no key of the log: name it with --key, as its operator publishes it, or name the gate's configuration with -c (%w)", err)
		}
		o.Key = evidence.OwnKey(signer)
		if dir, err := gate.DataDir(c); err == nil && checkpoint == "" {
			checkpoint, o.Own = filepath.Join(dir, evidence.CheckpointFile), true
		}
	}
	if checkpoint != "" {
		switch s, err := evidence.ReadState(checkpoint); {
		case o.Own && errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			known, err := o.Key.Open(s.Note)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", checkpoint, err)
			}
			o.Known, o.KnownFile = &known, checkpoint
		}
	}
	if a.From != "" {
		if o.From, err = evidence.ReadState(a.From); err != nil {
			return nil, err
		}
		if err := o.From.Verify(o.Key); err != nil {
			return nil, fmt.Errorf("%s: %w", a.From, err)
		}
	}
	return o, nil
}

// openReplay returns what decides records again by data_dir.
func openReplay(c *gate.Config, s console.Streams) (*audit.Replay, error) {
	archive, dir, err := gate.OpenSnapshots(c, s)
	if err != nil {
		return nil, err
	}
	return &audit.Replay{Replayer: replay.New(gate.Evidence{Reader: archive, Dir: dir}, gate.KeptSettings), Dir: dir}, nil
}

// printKey prints the verifier key of the log.
func (a *Audit) printKey(s console.Streams) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	signer, err := gate.ReadSigner(c)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, signer.Key())
	return err
}
