package auditreport

import (
	"errors"
	"fmt"
	"os"

	"robotsgate/internal/audit"
	"robotsgate/internal/datadir"
	"robotsgate/internal/evidence"
	"robotsgate/internal/gate"
)

// A verifyReport verifies the transparency logs.
type verifyReport struct {
	*evidence.Verifier
}

// errNoKey says what --verify needs.
var errNoKey = errors.New("no key of the log: name it with --key, as its operator publishes it, or name the gate's configuration with -c")

func (a *Options) verifyReport(c *gate.Config) (*verifyReport, error) {
	o := evidence.VerifyOptions{Strict: a.Strict, Gate: a.Filter.Gate}
	var err error
	if o.Keys, err = evidence.ParseKeys(a.Key); err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	if len(a.Key) == 0 || c.File() != "" {
		switch signer, err := datadir.Signer(c); {
		case err == nil:
			o.Keys.AddOwn(signer)
			if o.Known, err = datadir.Checkpoints(c); err != nil {
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
		o.Known = append(o.Known, evidence.Known{Note: evidence.Note(string(text)), Where: file})
	}
	return &verifyReport{evidence.NewVerifier(o)}, nil
}

// Line does nothing: the verifier takes lines that are not parsed.
func (v *verifyReport) Line(*audit.Line) {}

// A verifyResult is the result of a verifyReport.
type verifyResult struct {
	Faults  int               `json:"faults"`
	Logs    []evidence.Report `json:"logs"`
	Lost    int64             `json:"lost"`
	Notes   []string          `json:"notes"`
	Entries int               `json:"records"`
	Said    []string          `json:"said"` // the first faults
}

func (v *verifyReport) result() (string, any, bool) {
	v.End()
	return "verify", verifyResult{
		Faults: v.Faulty, Logs: append([]evidence.Report{}, v.Logs...), Lost: v.Lost, Entries: v.Entries, // in JSON [] in place of null
		Said: append([]string{}, v.Faults...), Notes: append([]string{}, v.Notes...),
	}, v.Faulty > 0
}
