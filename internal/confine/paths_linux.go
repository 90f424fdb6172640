//go:build linux && (amd64 || arm64)

package confine

import (
	"os"
	"path/filepath"
	"strings"
)

// A mount is one line of /proc/self/mountinfo, proc_pid_mountinfo(5).
type mount struct {
	point string
	kind  string // of the file system
}

func readMounts() (all []mount, err error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(data)) {
		before, after, ok := strings.Cut(line, " - ")
		fields, more := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) > 4 && len(more) > 0 {
			all = append(all, mount{unescape(fields[4]), more[0]})
		}
	}
	return all, err
}

// unescape undoes the octal escapes of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// realFiles returns the absolute paths of the regular files that exist, without symbolic links.
func realFiles(files []string) (paths []string) {
	for _, file := range files {
		real, err := filepath.EvalSymlinks(file)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if info, statErr := os.Stat(real); err == nil && statErr == nil && info.Mode().IsRegular() {
			paths = append(paths, real)
		}
	}
	return paths
}
