//go:build linux && (amd64 || arm64)

package confine

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// scratch is where a file system in memory is mounted for a moment, to take files from it. Every system
// has it, and nothing else runs here yet.
const scratch = "/proc"

// devices lead to other systems, without the network.
var devices = []string{"/dev/vhost-vsock", "/dev/vhost-net", "/dev/vsock"}

// setUpMounts changes what the command sees of the file system. It cannot undo that: it has no
// capability here, and in a namespace of its own the kernel locks these mounts, mount_namespaces(7).
// FinishMounts does the rest, when the gate has a CA.
func setUpMounts(masked []string) error {
	// What is mounted outside later does not appear here: it could show a hidden socket at another path.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return failed("separate the mounts from those outside", err)
	}
	for _, step := range []func() error{
		mountProc, forbidMountNamespaces, protectSettings, mountScratch, func() error { return hide(append(masked, devices...)) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func finishMounts(trust []string, l *launch) error {
	if l.Bundle != "" {
		data, err := os.ReadFile(l.Bundle)
		if err != nil {
			return failed("read the certificate authorities", err)
		}
		if err := replaceWith("bundle.pem", data, trust); err != nil {
			return err
		}
	}
	// A name server such as fe80::1%eth0 has no route inside.
	if err := replaceWith("resolv.conf", []byte("nameserver 127.0.0.1\n"), existing([]string{"/etc/resolv.conf"})); err != nil {
		return err
	}
	// Most clients read this file first: then DNS would not be asked for the names of Options.Reach.
	hosts := "127.0.0.1 localhost\n::1 localhost\n"
	if name, err := os.Hostname(); err == nil { // Java and others look up their own host
		hosts += "127.0.0.1 " + name + "\n"
	}
	if err := replaceWith("hosts", []byte(hosts), existing([]string{"/etc/hosts"})); err != nil {
		return err
	}
	if l.ReadOnly != "" {
		if err := bindReadOnly(l.ReadOnly); err != nil {
			return failed("make "+l.ReadOnly+" read-only", err)
		}
	}
	if err := hide(l.Hidden); err != nil {
		return err
	}
	if err := unix.Unmount(scratch, unix.MNT_DETACH); err != nil {
		return failed("unmount a file system in memory", err)
	}
	// The current directory may be below a mount of before.
	return failed("return to the current directory", os.Chdir(l.Dir))
}

// mountProc mounts a /proc that has only the processes in the PID namespace.
func mountProc() error {
	return failed("mount /proc", unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
}

// protectSettings makes the kernel's settings read-only: root may write to them without a capability, and by some, such as
// kernel.core_pattern, the kernel would run programs outside.
func protectSettings() error {
	return failed("make /proc/sys read-only", bindReadOnly("/proc/sys"))
}

// forbidMountNamespaces sets the limit of mount namespaces in this user namespace and all below it to zero:
// namespaces(7). The kernel refuses to rename or remove what is a mount point in the caller's mount namespace only:
// from another one without these mounts, a command could move a hidden file to where it has a mount of its own.
func forbidMountNamespaces() error {
	return failed("forbid further mount namespaces", os.WriteFile("/proc/sys/user/max_mnt_namespaces", []byte("0"), 0))
}

// bindReadOnly makes one file or folder read-only.
func bindReadOnly(path string) error {
	if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return makeReadOnly(path)
}

// makeReadOnly changes one mount. A flag that it has must be set again, since a user namespace must not
// clear it: mount_namespaces(7).
func makeReadOnly(path string) error {
	var have unix.Statfs_t
	if err := unix.Statfs(path, &have); err != nil {
		return err
	}
	flags := uintptr(have.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME)
	return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, "")
}

// mountScratch mounts a file system in memory at scratch, with a socket that no process listens on.
func mountScratch() error {
	if err := unix.Mount("tmpfs", scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=16m"); err != nil {
		return failed("mount a file system in memory", err)
	}
	return failed("make a socket in memory", cmp.Or(unix.Mknod(closedSocket, unix.S_IFSOCK, 0), os.Chmod(closedSocket, 0o666)))
}

const closedSocket = scratch + "/closed"

// hide puts the closed socket in front of files.
func hide(paths []string) error {
	for _, path := range paths {
		err := unix.Mount(closedSocket, path, "", unix.MS_BIND, "")
		if err != nil && !unreachable(path, err) {
			return failed("hide "+path, err)
		}
	}
	return nil
}

// unreachable reports whether err means that the path can't be reached, also by the command.
func unreachable(path string, err error) bool {
	var s unix.Stat_t
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
	return missing && unix.Stat(path, &s) != nil
}
