//go:build linux && (amd64 || arm64)

package confine

import (
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, seccomp(2). The system calls look at the lower half of the arguments
// that are judged here, which comes first on the little-endian architectures that there are.
const (
	numberAt   = 0
	archAt     = 4
	firstArgAt = 16
)

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
