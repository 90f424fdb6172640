package ca

import (
	"os"
	"path/filepath"
)

// ClientFiles are the files that make clients trust the CA.
type ClientFiles struct {
	Cert   string // the certificate alone, for clients that add it to their roots
	Bundle string // with the system's roots, for clients that replace their roots by it
	Wgetrc string // names the bundle, for wget and wget2, which read no variable for it
}

// WriteClientFiles brings these files in dir up to date. If the system's roots are not found the
// error is ErrNoRoots, and the files can be used nevertheless.
func (a *Authority) WriteClientFiles(dir string) (ClientFiles, error) {
	bundle, rootsErr := a.WriteBundle(dir)
	if bundle == "" {
		return ClientFiles{}, rootsErr
	}
	f := ClientFiles{Cert: a.CertFile(), Bundle: bundle, Wgetrc: filepath.Join(dir, "wgetrc")}
	want := "# Written by robotsgate.\nca_certificate = " + bundle + "\n"
	if have, err := os.ReadFile(f.Wgetrc); err == nil && string(have) == want {
		return f, rootsErr
	}
	if err := WriteFile(f.Wgetrc, []byte(want)); err != nil {
		return ClientFiles{}, err
	}
	return f, rootsErr
}
