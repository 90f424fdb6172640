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

// streamNames are the names of the standard streams, by descriptor.
var streamNames = []string{"standard input", "standard output", "standard error"}

// checkStreams returns an error if a standard stream leads out of the namespaces, and keep does not
// name it. A network socket can be connected anew, connect(2), and then belongs to the network outside.
// In a folder that was opened outside no socket is hidden.
func checkStreams(keep []int) error {
	for fd, name := range streamNames {
		err := checkStream(fd)
		if err == nil || slices.Contains(keep, fd) {
			continue
		}
		return &StepError{
			Step: "pass on " + name, Err: err,
			Remedy: fmt.Sprintf("Put a pipe in between, such as that of cat; or let the command have it as it is: --keep-fd %d", fd),
		}
	}
	return nil
}

// checkStream returns an error if a descriptor leads out.
func checkStream(fd int) error {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return nil // a closed one, which is /dev/null inside
	}
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFBLK:
		return nil
	case unix.S_IFREG:
		var where unix.Statfs_t
		if err := unix.Fstatfs(fd, &where); err != nil || slices.Contains(notStreams, int64(where.Type)) {
			return errors.New("it is an object of the kernel")
		}
		return nil
	case unix.S_IFCHR:
		if unix.Major(s.Rdev) == miscMajor {
			return errors.New("it is a device that may lead to other systems")
		}
		return nil
	case unix.S_IFSOCK:
		return checkSocket(fd)
	case unix.S_IFDIR:
		return errors.New("it is a folder")
	}
	return errors.New("it is an object of the kernel")
}

// notStreams are the file systems with regular files that are no data: namespaces, processes and others.
var notStreams = []int64{unix.NSFS_MAGIC, pidfsMagic, mqueueMagic, unix.ANON_INODE_FS_MAGIC, unix.SOCKFS_MAGIC}

// miscMajor is the number of /dev/net/tun, /dev/vhost-net and similar devices.
const miscMajor = 10

// checkSocket accepts connected Unix sockets other than datagram ones: they stay connected to the
// process to which they are.
func checkSocket(fd int) error {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || family != unix.AF_UNIX {
		return errors.New("it is a network socket, by which the command could reach other hosts")
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind == unix.SOCK_DGRAM {
		return errors.New("it is a datagram socket, by which the command could reach other processes")
	}
	if _, err := unix.Getpeername(fd); err != nil {
		return errors.New("it is a socket without a peer")
	}
	return nil
}
