package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"robotsgate/internal/auditreport"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
)

// Audit reads audit logs.
type Audit struct {
	Configured
	auditreport.Options
	Data      string `placeholder:"DIR" help:"With --replay: a folder with snapshots and configurations, such as a copy of another gate's data_dir."`
	PublicKey bool   `name:"public-key" help:"Print the verifier key of the gate's audit log, to publish."`
}

// Run reads the files once, for all reports.
func (a *Audit) Run(ctx context.Context, s console.Streams) error {
	if a.PublicKey {
		return a.printKey(s)
	}
	if len(a.File) == 0 {
		return errors.New("which audit log? The key log.audit names it; without one, the status page has the latest refusals")
	}
	if err := a.Check(); err != nil {
		return err
	}
	if a.Data != "" && !a.Replay {
		return errors.New("--data needs --replay")
	}
	named := map[string]bool{}
	a.File = slices.DeleteFunc(a.File, func(file string) bool { // each record of a file that is named twice would count twice
		file = filepath.Clean(file)
		again := named[file]
		named[file] = true
		return again
	})
	if err := canOpen(a.File); err != nil {
		return err
	}
	if a.ID != "" && !a.Replay {
		return auditreport.PrintRecord(s, a.Options)
	}
	c, err := a.load()
	if err != nil {
		return err
	}
	if a.Data != "" {
		c.DataDir = a.Data
	}
	return auditreport.Print(s, c, a.Options)
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

// canOpen reports the files that can't be opened. It does not open a pipe, since that would wait for
// its writer.
func canOpen(files []string) error {
	var errs []error
	for _, file := range files {
		info, err := os.Stat(file)
		switch {
		case file == "-" || err == nil && !info.Mode().IsRegular() && !info.IsDir():
			continue
		case err == nil && info.IsDir():
			errs = append(errs, fmt.Errorf("%s is a folder: name the logs in it", file))
			continue
		}
		f, err := os.Open(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("%s: no such file: the key log.audit of the gate's configuration names its audit log", file))
		case err != nil:
			errs = append(errs, err)
		default:
			f.Close()
		}
	}
	return errors.Join(errs...)
}
