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

// notFiles are the file systems in which regular files are objects of the kernel, not data. The numbers
// are of statfs(2).
var notFiles = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.NSFS_MAGIC,
	unix.BPF_FS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.ANON_INODE_FS_MAGIC,
	mqueueMagic, unix.SOCKFS_MAGIC, pidfsMagic,
}

// Numbers of include/uapi/linux/magic.h and ipc/mqueue.c.
const (
	pidfsMagic  = 0x50494446
	mqueueMagic = 0x19800202
)

// passedOn returns the descriptors beyond 2 that the command gets, of those that this process was
// started with: pipes, regular files, and those in keep. It marks all others as closed for new
// processes. The descriptors that this process has opened itself are so marked from the beginning.
func passedOn(keep []int) (passed []int, err error) {
	open, err := descriptors()
	if err != nil {
		return nil, fmt.Errorf("list the descriptors: %w", err)
	}
	for _, fd := range keep {
		if fd < 0 || fd > 2 && (!slices.Contains(open, fd) || !inherited(fd)) {
			return nil, fmt.Errorf("--keep-fd %d: robotsgate was not started with this descriptor", fd)
		}
	}
	for _, fd := range open {
		if fd < 3 || !inherited(fd) {
			continue
		}
		if slices.Contains(keep, fd) || harmless(fd) {
			passed = append(passed, fd)
			continue
		}
		unix.CloseOnExec(fd)
	}
	return passed, nil
}

// closeOthers marks all descriptors beyond 2 that are not in keep as closed for new processes.
func closeOthers(keep []int) error {
	open, err := descriptors()
	if err != nil {
		return err
	}
	for _, fd := range open {
		if fd > 2 && !slices.Contains(keep, fd) {
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
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return true
	case unix.S_IFREG:
		var where unix.Statfs_t
		err := unix.Fstatfs(fd, &where)
		return err == nil && !slices.Contains(notFiles, int64(where.Type))
	}
	return false
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
