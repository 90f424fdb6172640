package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"robotsgate/internal/audit"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
)

// A verifyReport verifies the transparency logs.
type verifyReport struct {
	*evidence.Verifier
}

// errNoKey says what --verify needs.
var errNoKey = errors.New("no key of the log: name it with --key, as its operator publishes it, or name the gate's configuration with -c")

func (a *Audit) verifyReport(c *gate.Config) (*verifyReport, error) {
	o := evidence.VerifyOptions{Strict: a.Strict, Gate: a.Gate}
	var err error
	if o.Keys, err = evidence.ParseKeys(a.Key, nil); err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	if o.Keys, err = evidence.ParseKeys(a.Key, a.Witness); err != nil {
		return nil, fmt.Errorf("--witness: %w", err)
	}
	if len(a.Key) == 0 || a.Config != "" {
		switch signer, err := logSigner(c); {
		case err == nil:
			o.Keys.AddOwn(signer)
			if o.Known, err = kept(c); err != nil {
				return nil, err
			}
		case len(a.Key) == 0:
			return nil, fmt.Errorf("%w (%w)", errNoKey, err)
		}
	}
	for _, file := range a.Checkpoint {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--checkpoint: %w", err)
		}
		o.Known = append(o.Known, evidence.Known{Note: string(text), Where: file})
	}
	return &verifyReport{evidence.NewVerifier(o)}, nil
}

// kept returns the checkpoints that data_dir keeps.
func kept(c *gate.Config) (all []evidence.Known, err error) {
	dir, err := gate.DataDir(c)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, evidence.CheckpointFile)
	switch text, err := os.ReadFile(path); {
	case err == nil:
		all = append(all, evidence.Known{Note: string(text), Where: path})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	ended, err := evidence.Ended(dir)
	for _, l := range ended {
		all = append(all, evidence.Known{Note: l.Checkpoint, Where: filepath.Join(dir, evidence.EndedFile), Ended: true, Time: l.Time})
	}
	return all, err
}

// Line does nothing: the verifier takes lines that are not parsed.
func (v *verifyReport) Line(*audit.Line) {}

// A verifyResult is the result of a verifyReport.
type verifyResult struct {
	Faults  int               `json:"faults"`
	Logs    []evidence.Report `json:"logs"`
	Lost    int64             `json:"lost"`
	Notes   []string          `json:"notes"`
	Records int               `json:"records"`
	Said    []string          `json:"said"` // the first faults
}

func (v *verifyReport) result() (string, any, bool) {
	v.End()
	return "verify", verifyResult{
		Faults: v.Faulty, Logs: append([]evidence.Report{}, v.Logs...), Lost: v.Lost, Records: v.Records, // in JSON [] in place of null
		Said: append([]string{}, v.Faults...), Notes: append([]string{}, v.Notes...),
	}, v.Faulty > 0
}
