//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A mount is one line of /proc/self/mountinfo, proc_pid_mountinfo(5).
type mount struct {
	id     string
	device string // "major:minor"
	root   string // of the mount, in its file system
	point  string
	kind   string // of the file system
}

func readMounts() ([]mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(data)), nil
}

func parseMounts(text string) (all []mount) {
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		fields, more := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(more) == 0 {
			continue
		}
		all = append(all, mount{id: fields[0], device: fields[2], root: unescape(fields[3]), point: unescape(fields[4]), kind: more[0]})
	}
	return all
}

// mountID returns the number of the mount in which a path is: proc_pid_fdinfo(5).
func mountID(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	data, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return "", err
	}
	_, id, _ := strings.Cut(string(data), "mnt_id:")
	id, _, _ = strings.Cut(id, "\n")
	return strings.TrimSpace(id), nil
}

// unescape undoes the octal escapes of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// aliases returns the other paths at which mounts show the file at path, which has no symbolic links.
func aliases(mounts []mount, path string) (all []string) {
	var at mount
	for _, m := range mounts {
		if below(path, m.point) && len(m.point) >= len(at.point) {
			at = m // the last one of equal paths is on top
		}
	}
	if at.point == "" {
		return nil
	}
	inside := join(at.root, strings.TrimPrefix(path, strings.TrimSuffix(at.point, "/")))
	for _, m := range mounts {
		if m.device != at.device || !below(inside, m.root) {
			continue
		}
		if alias := join(m.point, strings.TrimPrefix(inside, strings.TrimSuffix(m.root, "/"))); alias != path {
			all = append(all, alias)
		}
	}
	return all
}

// join joins a folder and a path in it that begins with a slash, or is empty.
func join(dir, rest string) string {
	if path := strings.TrimSuffix(dir, "/") + rest; path != "" {
		return path
	}
	return "/"
}

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
