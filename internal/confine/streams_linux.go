//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

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
