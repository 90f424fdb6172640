//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeOthers leaves open for new processes, of the descriptors beyond 2 that this process was started with, those that
// the command gets: pipes, regular files, and those in keep. The descriptors that this process has opened itself are
// closed for them from the beginning.
func closeOthers(keep []int) error {
	open, err := descriptors()
	if err != nil {
		return fmt.Errorf("list the descriptors: %w", err)
	}
	for _, fd := range keep {
		if fd < 0 || fd > 2 && (!slices.Contains(open, fd) || !inherited(fd)) {
			return fmt.Errorf("--keep-fd %d: robotsgate was not started with this descriptor", fd)
		}
	}
	for _, fd := range open {
		if fd > 2 && !slices.Contains(keep, fd) && !harmless(fd) {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// inherited reports whether a new process would get this descriptor.
func inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// harmless reports whether a descriptor is a pipe or a regular file.
func harmless(fd int) bool {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return false
	}
	return s.Mode&unix.S_IFMT == unix.S_IFIFO || s.Mode&unix.S_IFMT == unix.S_IFREG
}

// descriptors returns the open descriptors. One or two of them were open only for the listing.
func descriptors() (open []int, err error) {
	entries, err := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			open = append(open, fd)
		}
	}
	if len(open) == 0 {
		err = errors.Join(err, errors.New("/proc/self/fd has none"))
	}
	return open, err
}

// streamNames are the names of the standard streams, by descriptor.
var streamNames = []string{"standard input", "standard output", "standard error"}

// checkStreams returns an error if a standard stream leads out of the namespaces, and keep does not
// name it. A network socket can be connected anew, connect(2), and then belongs to the network outside.
// In a folder that was opened outside no socket is hidden.
func checkStreams(keep []int) error {
	for fd, name := range streamNames {
		if what := leadsOut(fd); what != "" && !slices.Contains(keep, fd) {
			return &StepError{
				Step: "pass on " + name, Err: fmt.Errorf("it is %s, by which the command could reach other hosts or processes", what),
				Remedy: fmt.Sprintf("Put a pipe in between, such as that of cat; or let the command have it as it is: --keep-fd %d", fd),
			}
		}
	}
	return nil
}

// leadsOut returns what a descriptor is if it leads out of the namespaces.
func leadsOut(fd int) string {
	var s unix.Stat_t
	if unix.Fstat(fd, &s) != nil {
		return "" // a closed one, which is /dev/null inside
	}
	family, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch kind := s.Mode & unix.S_IFMT; {
	case kind == unix.S_IFSOCK && family != unix.AF_UNIX:
		return "a network socket"
	case kind == unix.S_IFDIR:
		return "a folder"
	}
	return ""
}
