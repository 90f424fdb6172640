//go:build linux && (amd64 || arm64)

package confine

import (
	"os"
	"strconv"
	"strings"

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
