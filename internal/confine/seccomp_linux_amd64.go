package confine

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_X86_64
	firstForeign = 0x40000000 // __X32_SYSCALL_BIT: the numbers of x32, which has the same architecture
)
