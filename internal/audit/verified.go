package audit

import (
	"fmt"

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

// Key returns the verifier key of the log.
func (v *verifyReport) Key() string {
	key, _ := v.options.Key.Of(v.Name)
	return key
}

// Records returns the number of records.
func (v *verifyReport) Records() int { return int(v.Size() - v.First) }

// Last returns the index of the last record.
func (v *verifyReport) Last() int64 { return v.Size() - 1 }

func (v *verifyReport) result() (template string, failed bool) {
	v.End()
	if v.strict {
		v.Faulty, v.Faults, v.Notes = v.Faulty+len(v.Notes), append(v.Faults, v.Notes...), nil
	}
	return "verify", v.Faulty > 0
}
