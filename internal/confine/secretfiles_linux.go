//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// allPaths returns the paths at which mounts show these files, without symbolic links. A file that does not
// exist has none. A file with another hard link is an error: it could be read by that one.
func allPaths(files []string) (paths []string, err error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, stepError("read the list of mounts", err)
	}
	for _, file := range files {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			continue // the gate has read the files that it needs
		}
		if real, err = filepath.Abs(real); err != nil {
			return nil, stepError("find the current folder", err)
		}
		info, err := os.Stat(real)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
			return nil, &StepError{
				Step: "hide the secret file " + file, Err: errors.New("it has other hard links, by which the command could read it"),
				Remedy: fmt.Sprintf("Remove the others; this finds them on the same file system: find / -samefile %s", real),
			}
		}
		paths = append(paths, real)
		for _, alias := range aliases(mounts, real) {
			if other, err := os.Stat(alias); err == nil && os.SameFile(info, other) {
				paths = append(paths, alias)
			}
		}
	}
	return paths, nil
}
