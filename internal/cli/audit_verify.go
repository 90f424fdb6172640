package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"robotsgate/internal/audit"
	"robotsgate/internal/config"
	"robotsgate/internal/escape"
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
	dir = filepath.Join(dir, chainsDir)
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
		Guessed: a.Config == "", Strict: a.Strict, Keyless: a.Keyless,
		Words: audit.VerifyWords{
			Folder:    "data_dir",
			GiveHeads: "; give -c with the gate's configuration",
			GiveKey:   "; give it with --key-file, or -c with the gate's configuration",
			NoKey:     "they are from before log.audit_key_file was set, which --keyless accepts, or have been added",
		},
	})
	return &verifyReport{v, dir}, nil
}

// end reads the heads of the chains again: a running gate may have begun new chains.
func (v *verifyReport) end() bool {
	if heads, err := audit.Heads(v.dir); err == nil {
		v.Later(heads)
	}
	v.End()
	return v.Faulty > 0
}

func (v *verifyReport) json() (string, any) {
	return "verify", map[string]any{
		"records": v.Records, "chains": v.Chains(), "faults": v.Faulty, "unchecked": v.Unchecked, "lost": v.Lost,
		"said": append([]string{}, v.Faults...), "notes": append([]string{}, v.Notes...), // [] in place of null
	}
}

func (v *verifyReport) print(w io.Writer) {
	for _, text := range v.Faults {
		fmt.Fprintln(w, escape.Printable(text))
	}
	if more := v.Faulty - len(v.Faults); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	for _, text := range v.Notes {
		fmt.Fprintln(w, "note: "+escape.Printable(text))
	}
	if v.Lost > 0 {
		fmt.Fprintf(w, "note: %s could not be written at the time\n", plural(v.Lost, "record"))
	}
	what := "none changed, missing or added"
	switch {
	case v.Faulty > 0:
		what = plural(v.Faulty, "fault")
	case v.Records == 0:
		what = "nothing to check"
	case v.Unchecked > 0: // notes have the details, of this and of the next
		what = fmt.Sprintf("no fault found; not checked against data_dir: %s%s", plural(v.Unchecked, "chain"), v.before())
	case v.Before > 0:
		what = "none changed or added" + v.before()
	}
	fmt.Fprintf(w, "%s in %s: %s\n", plural(v.Records, "record"), plural(v.Chains(), "chain"), what)
}

// before returns the number of records that are missing before the first ones, in words.
func (v *verifyReport) before() string {
	if v.Before == 0 {
		return ""
	}
	return fmt.Sprintf("; not here: %d before these, rotated away, removed or not given", v.Before)
}
