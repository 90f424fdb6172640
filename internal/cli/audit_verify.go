package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"robotsgate/internal/audit"
	"robotsgate/internal/config"
	"robotsgate/internal/gate"
	"robotsgate/internal/settings"
)

// A verifyReport checks the chains of records.
type verifyReport struct {
	*audit.Verifier
	dir string
}

func (a *Audit) verifyReport(c *config.Config) (*verifyReport, error) {
	dir, err := config.DataDir(c)
	if err != nil {
		return nil, err
	}
	id, err := gate.ReadID(dir)
	if err != nil {
		id = "" // of an earlier version, or the folder is missing
	}
	dir = filepath.Join(dir, settings.ChainsDir)
	heads, err := audit.Heads(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	expired, err := audit.Expired(dir)
	if err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	files := a.KeyFile
	if c.Log.AuditKeyFile != "" {
		files = append(files, c.Log.AuditKeyFile)
	}
	var keys []audit.Key
	for _, file := range files {
		key, err := config.ReadKey(file)
		if _, ok := errors.AsType[config.NoKeyError](err); ok {
			return nil, fmt.Errorf("%w: name the key that the log was written with", err)
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	v := audit.NewVerifier(audit.VerifyOptions{
		Files: a.File, Heads: heads, Expired: expired, Keys: keys,
		Gate: cmp.Or(a.Gate, id), Only: a.Gate != "",
		Guessed: a.Config == "", Strict: a.Strict, Keyless: a.Keyless,
		Words: audit.VerifyWords{
			Folder:    "data_dir",
			OtherGate: "; verify them with -c of their gate and --gate",
			GiveHeads: "; give -c with the gate's configuration",
			GiveKey:   "; give it with --key-file, or -c with the gate's configuration",
			NoKey:     "they are from before log.audit_key_file was set, which --keyless accepts, or have been added",
		},
	})
	return &verifyReport{v, dir}, nil
}

// A verifyResult is the result of a verifyReport.
type verifyResult struct {
	Chains    int      `json:"chains"`
	Faults    int      `json:"faults"`
	Lost      int      `json:"lost"`
	Notes     []string `json:"notes"`
	Records   int      `json:"records"`
	Said      []string `json:"said"`      // the first faults
	Unchecked int      `json:"unchecked"` // chains
	More      int      `json:"-"`         // faults
	Before    int64    `json:"-"`         // records that are missing before the first ones
}

// result reads the heads of the chains again: a running gate may have begun new chains.
func (v *verifyReport) result() (string, any, bool) {
	if heads, err := audit.Heads(v.dir); err == nil {
		v.Later(heads)
	}
	v.End()
	return "verify", verifyResult{
		Chains: v.Chains(), Records: v.Records, Lost: v.Lost, Unchecked: v.Unchecked, Before: v.Before,
		Faults: v.Faulty, More: v.Faulty - len(v.Faults),
		Said: append([]string{}, v.Faults...), Notes: append([]string{}, v.Notes...), // in JSON [] in place of null
	}, v.Faulty > 0
}
