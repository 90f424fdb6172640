package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A denial is a system call that a container may not permit, with what is returned then.
type denial struct {
	number uint32
	errno  unix.Errno
	mask   uint32 // of the first argument; 0: the call is denied in any case
	value  uint32 // that the argument has under the mask
}

var denials = map[string]denial{
	"user namespaces": {number: unix.SYS_CLONE, errno: unix.EPERM, mask: unix.CLONE_NEWUSER, value: unix.CLONE_NEWUSER},
	"mounts":          {number: unix.SYS_MOUNT, errno: unix.EPERM},
	"netlink":         {number: unix.SYS_SOCKET, errno: unix.EAFNOSUPPORT, mask: 0xff, value: unix.AF_NETLINK},
	"listening":       {number: unix.SYS_LISTEN, errno: unix.EACCES},
	"seccomp":         {number: unix.SYS_SECCOMP, errno: unix.ENOSYS},
	"securebits":      {number: unix.SYS_PRCTL, errno: unix.EPERM, mask: 0xff, value: unix.PR_SET_SECUREBITS},
	"no_new_privs":    {number: unix.SYS_PRCTL, errno: unix.EINVAL, mask: 0xff, value: unix.PR_SET_NO_NEW_PRIVS},
	"dropping":        {number: unix.SYS_CAPSET, errno: unix.EPERM},
	"current folder":  {number: unix.SYS_CHDIR, errno: unix.EACCES},
	"unmounting":      {number: unix.SYS_UMOUNT2, errno: unix.EPERM},
}

// without runs a program that cannot make a system call: without DENIAL PROGRAM ARG...
func without() {
	d, ok := denials[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such denial")
		os.Exit(2)
	}
	program, err := exec.LookPath(os.Args[2])
	if err == nil {
		err = d.deny()
	}
	if err == nil {
		err = syscall.Exec(program, os.Args[2:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

// deny puts a filter in force for all threads: seccomp(2).
func (d denial) deny() error {
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: d.number, SkipTrue: 4},
		bpf.LoadAbsolute{Off: 16, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: d.mask},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: d.value, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(d.errno)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	runtime.LockOSThread() // both calls are about the same thread
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&header))); errno != 0 {
		return errno
	}
	return nil
}
