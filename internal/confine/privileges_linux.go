//go:build linux && (amd64 || arm64)

package confine

import (
	"runtime"

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
	for c := uintptr(0); c <= maxCapability; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL && c > unix.CAP_LAST_CAP {
			break // a kernel that does not know of it
		}
		if err != nil && err != unix.EINVAL {
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

const maxCapability = 63 // the sets have 64 bits

// ambient are the capabilities that the stub keeps when it is executed by a user other than root.
var ambient = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}

// onLockedThread calls f on a thread that ends afterwards, so that no other goroutine gets what f has
// changed.
func onLockedThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		f()
	}()
	<-done
}
