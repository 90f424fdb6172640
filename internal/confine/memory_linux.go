//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseMemory returns the memory that the stub has needed only to start. From now on the stub waits; a
// page of the program that it needs again is read from the page cache.
func releaseMemory() {
	debug.FreeOSMemory()
	maps, err := os.ReadFile("/proc/self/smaps")
	program, linkErr := os.Readlink("/proc/self/exe")
	if err != nil || linkErr != nil {
		return
	}
	for _, m := range unchanged(string(maps), program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

// A mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// unchanged returns the mappings of a file that cannot be written to and have no page of their own:
// proc_pid_smaps(5).
func unchanged(smaps, file string) (all []mapping) {
	var at mapping
	candidate := false
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 6 && strings.Contains(fields[0], "-"):
			_, err := fmt.Sscanf(fields[0], "%x-%x", &at.start, &at.end)
			candidate = err == nil && (fields[1] == "r-xp" || fields[1] == "r--p") && fields[5] == file
		case candidate && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0":
			all = append(all, at)
		}
	}
	return all
}
