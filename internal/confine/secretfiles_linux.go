//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// allPaths returns the paths at which mounts show these files, without symbolic links. A file that does not
// exist has none. A file with another hard link is an error: it could be read by that one. So is a file that one of
// the command's descriptors has open, also one that was removed since.
func allPaths(files []string, descriptors []int) (paths []string, err error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, stepError("read the list of mounts", err)
	}
	for _, file := range files {
		if err := checkDescriptors(file, descriptors); err != nil {
			return nil, err
		}
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

// checkDescriptors returns an error if one of the descriptors leads to a secret file.
func checkDescriptors(file string, descriptors []int) error {
	var secret, open unix.Stat_t
	if unix.Stat(file, &secret) != nil || secret.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	for _, fd := range descriptors {
		if unix.Fstat(fd, &open) == nil && open.Dev == secret.Dev && open.Ino == secret.Ino {
			return &StepError{
				Step: "hide the secret file " + file, Err: fmt.Errorf("descriptor %d, which the command gets, has it open", fd),
				Remedy: fmt.Sprintf("Name the file by its path, and close the descriptor: %d<&-", fd),
			}
		}
	}
	return nil
}
