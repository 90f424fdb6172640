//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestFilter runs the seccomp filter for system calls.
func TestFilter(t *testing.T) {
	vm, err := bpf.NewVM(filter())
	if err != nil {
		t.Fatal(err)
	}
	const (
		allowed  = unix.SECCOMP_RET_ALLOW
		refusing = unix.SECCOMP_RET_ERRNO
	)
	for _, c := range []struct {
		name         string
		arch, number uint32
		args         [2]uint32
		want         uint32
	}{
		{"read", auditArch, unix.SYS_READ, [2]uint32{}, allowed},
		{"socket of IPv4", auditArch, unix.SYS_SOCKET, [2]uint32{unix.AF_INET}, allowed},
		{"socket of IPv6", auditArch, unix.SYS_SOCKET, [2]uint32{unix.AF_INET6}, allowed},
		{"socket of Unix", auditArch, unix.SYS_SOCKET, [2]uint32{unix.AF_UNIX}, allowed},
		{"socket pair", auditArch, unix.SYS_SOCKETPAIR, [2]uint32{unix.AF_UNIX}, allowed},
		{"socket of netlink", auditArch, unix.SYS_SOCKET, [2]uint32{unix.AF_NETLINK}, allowed},
		{"socket of vsock", auditArch, unix.SYS_SOCKET, [2]uint32{unix.AF_VSOCK}, refusing | uint32(unix.EAFNOSUPPORT)},
		{"packet socket", auditArch, unix.SYS_SOCKET, [2]uint32{unix.AF_PACKET}, refusing | uint32(unix.EAFNOSUPPORT)},
		{"socket pair of vsock", auditArch, unix.SYS_SOCKETPAIR, [2]uint32{unix.AF_VSOCK}, refusing | uint32(unix.EAFNOSUPPORT)},
		{"typing into the terminal", auditArch, unix.SYS_IOCTL, [2]uint32{0, unix.TIOCSTI}, refusing | uint32(unix.EPERM)},
		{"pasting into a console", auditArch, unix.SYS_IOCTL, [2]uint32{0, unix.TIOCLINUX}, refusing | uint32(unix.EPERM)},
		{"size of the terminal", auditArch, unix.SYS_IOCTL, [2]uint32{0, unix.TIOCGWINSZ}, allowed},
		{"io_uring", auditArch, unix.SYS_IO_URING_SETUP, [2]uint32{}, refusing | uint32(unix.ENOSYS)},
		{"an io_uring that was inherited", auditArch, unix.SYS_IO_URING_ENTER, [2]uint32{}, refusing | uint32(unix.ENOSYS)},
		{"request_key", auditArch, unix.SYS_REQUEST_KEY, [2]uint32{}, refusing | uint32(unix.ENOSYS)},
		{"bpf", auditArch, unix.SYS_BPF, [2]uint32{}, refusing | uint32(unix.EPERM)},
		{"open_by_handle_at", auditArch, unix.SYS_OPEN_BY_HANDLE_AT, [2]uint32{}, refusing | uint32(unix.EPERM)},
		{"another architecture", unix.AUDIT_ARCH_I386, unix.SYS_READ, [2]uint32{}, refusing | uint32(unix.ENOSYS)},
		{"x32", auditArch, 0x40000000 | unix.SYS_SOCKET, [2]uint32{unix.AF_VSOCK}, refusing | uint32(unix.ENOSYS)},
	} {
		// The machine of package bpf reads big-endian words, the kernel native ones.
		data := make([]byte, 64)
		put := func(at int, v uint32) { copy(data[at:], []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}) }
		put(numberAt, c.number)
		put(archAt, c.arch)
		put(firstArgAt, c.args[0])
		put(firstArgAt+8, c.args[1])
		got, err := vm.Run(data)
		if err != nil || uint32(got) != c.want {
			t.Errorf("%s: got %#x, %v; want %#x", c.name, got, err, c.want)
		}
	}
}

// TestBoundPaths: the absolute paths of sockets are read as the kernel lists them.
func TestBoundPaths(t *testing.T) {
	const list = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 20437 /run/dbus/system_bus_socket
0000000000000000: 00000003 00000000 00000000 0001 03 24851
0000000000000000: 00000002 00000000 00000000 0002 01     7 /tmp/a b/c.sock
0000000000000000: 00000002 00000000 00010000 0001 01 23012 @/tmp/.X11-unix/X0
0000000000000000: 00000002 00000000 00010000 0001 01 23013 relative/path
`
	if got, want := fmt.Sprintf("%q", boundPaths(list)), `["/run/dbus/system_bus_socket" "/tmp/a b/c.sock"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRemedy checks that the message for a step names what to change.
func TestRemedy(t *testing.T) {
	for _, c := range []struct {
		step  string
		files map[string]string
		want  string
	}{
		{"make namespaces", map[string]string{"/proc/sys/user/max_user_namespaces": "0"}, "user.max_user_namespaces="},
		{"make namespaces", map[string]string{"/proc/sys/user/max_net_namespaces": "0"}, "user.max_net_namespaces="},
		{"make namespaces", map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "kernel.unprivileged_userns_clone=1"},
		{"make namespaces", map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1", "/proc/self/attr/current": "unconfined"}, "deploy/apparmor/robotsgate"},
		{"mount /proc", nil, "systempaths=unconfined"},
		{"mount /proc", nil, "docs/confine.md"},
		{"make namespaces", nil, "--security-opt seccomp"},
		{"make namespaces", nil, "docs/confine.md"},
	} {
		got := remedy(c.step, func(path string) string { return c.files[path] })
		if !strings.Contains(got, c.want) {
			t.Errorf("%s with %v: got %q, want %q in it", c.step, c.files, got, c.want)
		}
	}
}
