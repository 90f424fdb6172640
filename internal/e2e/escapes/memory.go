//go:build linux && (amd64 || arm64)

package escapes

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory has what the kernel keeps for several processes.
var memory = []Attempt{
	{Name: "sysv-message", Tries: "send a System V message", Needs: []string{"sysv message"}, try: msgSend},
	{Name: "posix-message", Tries: "send a POSIX message", Needs: []string{"mqueue"}, try: mqSend},
	{Name: "session-keyring", Tries: "read a key of the inherited session keyring", Needs: []string{"session key"}, try: keyRead(unix.KEY_SPEC_SESSION_KEYRING)},
	{Name: "user-keyring", Tries: "read a key of the user's keyring", Needs: []string{"user key"}, try: keyRead(unix.KEY_SPEC_USER_KEYRING)},
	{Name: "bpf-map", Tries: "read a BPF map by its number", Root: true, Needs: []string{"bpf"}, try: bpfRead},
}

// terminals has ways to type into the terminal, from which a shell reads after the command has ended.
var terminals = []Attempt{
	{Name: "tiocsti", Tries: "type into the terminal", Needs: []string{"terminal"}, try: func(t *trial) error {
		return t.typeToken(func(fd int, c byte) error {
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
			return errnoOf(errno)
		})
	}},
	{Name: "tiocsti-high-bits", Tries: "type into the terminal by a request with high bits set", Needs: []string{"terminal"}, try: func(t *trial) error {
		return t.typeToken(func(fd int, c byte) error {
			const high = 1 << 32 // the kernel takes 32 bits of the request
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), high|unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
			return errnoOf(errno)
		})
	}},
	{Name: "tiocsti-i386", Tries: "type into the terminal by the calls of 32-bit programs", Needs: []string{"terminal", "i386"}, try: func(t *trial) error {
		return t.typeToken(func(fd int, c byte) error { return int80Ioctl(fd, unix.TIOCSTI, c) })
	}},
	{Name: "tioclinux", Tries: "paste into the console", Unproven: "it needs the console as its terminal", try: func(t *trial) error {
		return t.typeToken(func(fd int, _ byte) error {
			paste := byte(3)
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCLINUX, uintptr(unsafe.Pointer(&paste)))
			return errnoOf(errno)
		})
	}},
}

func errnoOf(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// typeToken types the token, one character at a time.
func (t *trial) typeToken(put func(fd int, c byte) error) error {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, c := range []byte(t.Token() + "\n") {
		if err := put(fd, c); err != nil {
			return err
		}
	}
	return nil
}

func msgSend(t *trial) error {
	id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(t.IPCKey), 0, 0)
	if errno != 0 {
		return fmt.Errorf("msgget: %w", errno)
	}
	message := append(binary.NativeEndian.AppendUint64(nil, 1), t.Token()...)
	_, _, errno = unix.Syscall6(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&message[0])), uintptr(len(message)-8), 0, 0, 0)
	return errnoOf(errno)
}

// mqOpen opens a queue by its name, which has no slash for the kernel (mq_overview(7)).
func mqOpen(name string, flags, mode int) (int, error) {
	path := append([]byte(name), 0)
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&path[0])), uintptr(flags), uintptr(mode), 0, 0, 0)
	return int(fd), errnoOf(errno)
}

func mqSend(t *trial) error {
	fd, err := mqOpen(t.Queue, unix.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("mq_open: %w", err)
	}
	defer unix.Close(fd)
	message := []byte(t.Token())
	_, _, errno := unix.Syscall6(unix.SYS_MQ_TIMEDSEND, uintptr(fd), uintptr(unsafe.Pointer(&message[0])), uintptr(len(message)), 0, 0, 0)
	return errnoOf(errno)
}

func keyRead(ring int) func(*trial) error {
	return func(t *trial) error {
		id, err := unix.KeyctlSearch(ring, "user", t.Run, 0)
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
		data := make([]byte, 100)
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, data, 0)
		if err != nil {
			return fmt.Errorf("read key %d: %w", id, err)
		}
		return t.read(data[:min(n, len(data))])
	}
}

func bpf(command uintptr, attributes []uint64) (int, error) {
	result, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(&attributes[0])), uintptr(8*len(attributes)))
	return int(result), errnoOf(errno)
}

// bpfRead looks into the first entry of every map (bpf(2)).
func bpfRead(t *trial) error {
	// Outside Go's memory, since the kernel gets the addresses in a structure. No key or value is larger.
	memory, err := unix.Mmap(-1, 0, 2<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	key := uint64(uintptr(unsafe.Pointer(&memory[0])))
	value := key + 1<<20
	next := []uint64{0, 0}
	for {
		if _, err := bpf(unix.BPF_MAP_GET_NEXT_ID, next); err != nil {
			return fmt.Errorf("next map: %w", err)
		}
		id := next[0] >> 32 // start_id and next_id
		next[0] = id
		fd, err := bpf(unix.BPF_MAP_GET_FD_BY_ID, []uint64{id, 0})
		if err != nil {
			return fmt.Errorf("map %d: %w", id, err)
		}
		_, err = bpf(unix.BPF_MAP_LOOKUP_ELEM, []uint64{uint64(fd), key, value, 0})
		unix.Close(fd)
		if err == nil && t.read(memory[1<<20:]) == nil {
			return nil
		}
	}
}
