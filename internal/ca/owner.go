package ca

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// An owner is the user and group of a file.
type owner struct{ uid, gid int }

const root = 0

// setOwner gives a file or folder that root has made for path to the owner of the file that it
// replaces or, if that is root, of the folder. A gate runs as that user and could not read a file
// of root's. It takes an open file, since the owner of the folder could put another file under
// its name.
func setOwner(made *os.File, path string) error {
	if os.Geteuid() != root {
		return nil // other users can make only files of their own
	}
	o, _ := ownerOf(path) // root, if it is not known
	if o.uid == root {
		o, _ = ownerOf(filepath.Dir(path))
	}
	if o.uid == root {
		return nil
	}
	return made.Chown(o.uid, o.gid)
}

// makeDir makes dir and its missing parents, readable only by their owner, which is
// that of the nearest existing folder.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = setDirOwner(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // another process may make it
		return err
	}
	return nil
}

func setDirOwner(dir string) error {
	above, err := os.OpenRoot(filepath.Dir(dir)) // does not follow links out of it
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
	return setOwner(f, dir)
}

// ownerOf returns the owner of a file, on systems that have owners.
func ownerOf(path string) (owner, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return owner{}, false
	}
	return ownerIn(info)
}

// belongsToUs reports whether this process can change the mode of a file: it runs
// as its owner, or the system has no owners.
func belongsToUs(info fs.FileInfo) bool {
	o, known := ownerIn(info)
	return !known || o.uid == os.Geteuid()
}
