//go:build linux && (amd64 || arm64)

package confine

import (
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// secureBits keep a process of root without capabilities: capabilities(7), "The securebits flags".
// They hold in this user namespace; one that the command makes begins with none of them, and has no
// power over this one. Each bit is followed by the one that locks it.
const (
	noRoot         = 1<<0 | 1<<1
	noSetuidFixup  = 1<<2 | 1<<3
	keepCapsLocked = 1 << 5
	noAmbientRaise = 1<<6 | 1<<7
	secureBits     = noRoot | noSetuidFixup | keepCapsLocked | noAmbientRaise
)

// dropPrivileges takes all privileges from this thread, for good, and from the processes that it
// starts. The caller has locked it.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return failed("set no_new_privs", err)
	}
	for c := range uintptr(64) { // the sets have 64 bits
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break // the kernel does not know of it, nor of higher ones
		} else if err != nil {
			return failed("empty the set of capabilities", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0); err != nil {
		return failed("lock the set of capabilities", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return failed("empty the set of ambient capabilities", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return failed("drop all capabilities", err)
	}
	return failed("set a seccomp filter", setFilter())
}

// ambient are the capabilities that the stub keeps when it is executed by a user other than root.
var ambient = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}

// Offsets in struct seccomp_data, seccomp(2). The system calls look at the lower half of the arguments
// that are judged here, which comes first on the little-endian architectures that there are.
const (
	numberAt   = 0
	archAt     = 4
	firstArgAt = 16
)

// auditArch is the architecture of this program's system calls.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// firstForeign is the first number of the calls of x32, which has the architecture of amd64:
// __X32_SYSCALL_BIT. Arm64 has no such numbers.
const firstForeign = 0x40000000

// families are the protocols of sockets that a command can have. All of them end in its network
// namespace, which is not so with AF_VSOCK, for example.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// withheld are system calls that could reach out of the namespaces, with what they return.
//   - io_uring opens and uses sockets without a system call that the filter sees;
//   - a key may be looked up by a program of the host, which resolves names: keyrings(7), request_key(2);
//   - a BPF program or map may be one of the host;
//   - a handle names a file by its number, also one that is hidden: open_by_handle_at(2).
//
// Calls that need a capability, or access to a process outside as with ptrace(2), are not among them:
// they fail as they are, also in a user namespace that the command makes.
var withheld = map[uint32]unix.Errno{
	unix.SYS_IO_URING_SETUP:    unix.ENOSYS,
	unix.SYS_IO_URING_ENTER:    unix.ENOSYS,
	unix.SYS_IO_URING_REGISTER: unix.ENOSYS,
	unix.SYS_ADD_KEY:           unix.ENOSYS,
	unix.SYS_REQUEST_KEY:       unix.ENOSYS,
	unix.SYS_KEYCTL:            unix.ENOSYS,
	unix.SYS_BPF:               unix.EPERM,
	unix.SYS_OPEN_BY_HANDLE_AT: unix.EPERM,
}

// terminalRequests are those of ioctl(2) that type into a terminal, so that the shell outside would
// execute it: ioctl_tty(2), ioctl_console(2).
var terminalRequests = []uint32{unix.TIOCSTI, unix.TIOCLINUX}

// filter returns the program that judges each system call.
func filter() []bpf.Instruction {
	refuse := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	// A program of another architecture has other numbers.
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		refuse(unix.ENOSYS),
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: firstForeign, SkipTrue: 1},
		refuse(unix.ENOSYS),
	}
	for number, errno := range withheld {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, refuse(errno))
	}
	// judge adds: for this call, load its argument, then the rules.
	judge := func(number, argAt uint32, rules ...bpf.Instruction) {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(1 + len(rules))},
			bpf.LoadAbsolute{Off: argAt, Size: 4})
		program = append(program, rules...)
	}
	for _, number := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		var rules []bpf.Instruction
		for _, family := range families {
			rules = append(rules, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: family, SkipTrue: 1}, allow)
		}
		judge(number, firstArgAt, append(rules, refuse(unix.EAFNOSUPPORT))...)
	}
	var rules []bpf.Instruction
	for _, request := range terminalRequests {
		rules = append(rules, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: request, SkipTrue: 1}, refuse(unix.EPERM))
	}
	judge(unix.SYS_IOCTL, firstArgAt+8, append(rules, allow)...)
	return append(program, allow)
}

// setFilter puts the filter in force for this thread, and for the processes that it starts.
func setFilter() error {
	raw, err := bpf.Assemble(filter())
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&header)))
	if errno != 0 {
		return errno
	}
	return nil
}
