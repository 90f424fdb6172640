package audit

import (
	"fmt"
	"time"

	"robotsgate/internal/evidence"
)

// A verifyReport verifies a transparency log.
type verifyReport struct {
	*evidence.Verifier
	options evidence.VerifyOptions
	strict  bool
}

// Line does nothing: the verifier takes lines that are not parsed.
func (v *verifyReport) Line(*Line) {}

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
