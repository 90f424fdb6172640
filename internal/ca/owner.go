package ca

import (
	"io/fs"
	"os"
	"path/filepath"
)

// An owner is whom a file belongs to, by number.
type owner struct{ uid, gid int }

const root = 0

// rightful returns whom a file that root writes is to belong to: whoever the one
// that it takes the place of belongs to, or the folder. For a gate runs as that
// user, and could read nothing of root's.
func rightful(old, folder owner) owner {
	if old.uid != root {
		return old
	}
	return folder
}

// handOver gives a file or folder that root has made for path to whom it should
// belong. Others can only make files of their own. It is open, since whoever the
// folder belongs to could put another under its name.
func handOver(made *os.File, path string) error {
	if os.Geteuid() != root {
		return nil
	}
	folder, known := ownerOf(filepath.Dir(path))
	if !known {
		return nil
	}
	old, _ := ownerOf(path) // root's, if there is none
	if o := rightful(old, folder); o.uid != root {
		return made.Chown(o.uid, o.gid)
	}
	return nil
}

// makeDir makes dir, and what is missing above it, for the user that the nearest
// folder belongs to. 0700: what is in there concerns one user.
func makeDir(dir string) error {
	var missing []string
	for at := filepath.Clean(dir); at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil {
			break
		}
		missing = append([]string{at}, missing...)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return explain(dir, err)
	}
	for _, at := range missing {
		if err := handOverDir(at); err != nil {
			return explain(at, err)
		}
	}
	return nil
}

func handOverDir(dir string) error {
	above, err := os.OpenRoot(filepath.Dir(dir)) // out of which no link leads
	if err != nil {
		return err
	}
	defer above.Close()
	f, err := above.Open(filepath.Base(dir))
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return err
	}
	return handOver(f, dir)
}

// ownerOf returns whom a file belongs to, where the system knows.
func ownerOf(path string) (owner, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return owner{}, false
	}
	return ownerIn(info)
}

// belongsToUs reports whether the user that we run as could change the mode of a
// file. Where there are no owners it could.
func belongsToUs(info fs.FileInfo) bool {
	o, known := ownerIn(info)
	return !known || o.uid == os.Geteuid()
}
