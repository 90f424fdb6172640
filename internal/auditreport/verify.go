package auditreport

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
)

// A verifyReport verifies a transparency log.
type verifyReport struct {
	*evidence.Verifier
	options evidence.VerifyOptions
	strict  bool
}

func (a *Options) verifyReport(c *gate.Config) (*verifyReport, error) {
	var o evidence.VerifyOptions
	var err error
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
	return &verifyReport{evidence.NewVerifier(o), o, a.Strict}, nil
}

// Line does nothing: the verifier takes lines that are not parsed.
func (v *verifyReport) Line(*audit.Line) {}

// incomplete reports that the beginning of the log is missing.
func (v *verifyReport) incomplete() error {
	if v.First == 0 || v.options.From != nil {
		return nil
	}
	return fmt.Errorf("log %s begins with record %d here: name the files before, or with --from the audit-checkpoint of a gate's data_dir from that time", v.Name, v.First)
}

// A verifyResult is the result of a verifyReport.
type verifyResult struct {
	Faults  int
	Said    []string // the first faults
	Notes   []string
	Records int
	First   int64
	Last    int64 // less than First: there is no record
	Log     string
	Key     string
	Signed  time.Time
	Covered int64
}

func (v *verifyReport) result() (string, any, bool) {
	v.End()
	if v.strict {
		v.Faulty, v.Faults, v.Notes = v.Faulty+len(v.Notes), append(v.Faults, v.Notes...), nil
	}
	key, _ := v.options.Key.Of(v.Name)
	return "verify", verifyResult{
		v.Faulty, v.Faults, v.Notes,
		int(v.Size() - v.First), v.First, v.Size() - 1, v.Name, key, v.Signed.UTC(), v.Covered,
	}, v.Faulty > 0
}
