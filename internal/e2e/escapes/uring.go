//go:build linux && (amd64 || arm64)

package escapes

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A ring is an io_uring with which one operation is done at a time (io_uring(7)).
type ring struct {
	fd             int
	sq, cq, sqes   []byte
	sqTail, cqHead uint32 // offsets
	sqArray        uint32
	cqes           uint32
}

// Operations of io_uring_enter(2).
const (
	opConnect = 16
	opSend    = 26
	opSocket  = 45
)

func newRing() (*ring, error) {
	var params [120]byte // struct io_uring_params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", errno)
	}
	at := func(i int) uint32 { return binary.NativeEndian.Uint32(params[i:]) }
	const sqOff, cqOff = 40, 80
	r := &ring{fd: int(fd), sqTail: at(sqOff + 4), sqArray: at(sqOff + 24), cqHead: at(cqOff), cqes: at(cqOff + 20)}
	var err error
	for _, m := range []struct {
		to     *[]byte
		offset int64
	}{{&r.sq, 0}, {&r.cq, 0x8000000}, {&r.sqes, 0x10000000}} {
		if *m.to, err = unix.Mmap(r.fd, m.offset, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return nil, fmt.Errorf("mmap: %w", err)
		}
	}
	return r, nil
}

// do does one operation and returns its result.
func (r *ring) do(op byte, fd int, offset, address uint64, length uint32) (int, error) {
	clear(r.sqes[:64])
	r.sqes[0] = op
	binary.NativeEndian.PutUint32(r.sqes[4:], uint32(int32(fd)))
	binary.NativeEndian.PutUint64(r.sqes[8:], offset)
	binary.NativeEndian.PutUint64(r.sqes[16:], address)
	binary.NativeEndian.PutUint32(r.sqes[24:], length)
	tail := (*uint32)(unsafe.Pointer(&r.sq[r.sqTail]))
	for i := range uint32(4) {
		binary.NativeEndian.PutUint32(r.sq[r.sqArray+4*i:], 0)
	}
	*tail++
	if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), 1, 1, 1, 0, 0); errno != 0 {
		return 0, fmt.Errorf("io_uring_enter: %w", errno)
	}
	head := (*uint32)(unsafe.Pointer(&r.cq[r.cqHead]))
	result := int32(binary.NativeEndian.Uint32(r.cq[r.cqes+16*(*head%8)+8:]))
	*head++
	if result < 0 {
		return 0, fmt.Errorf("io_uring operation %d: %w", op, syscall.Errno(-result))
	}
	return int(result), nil
}

// send makes a socket, connects it and sends text.
func (r *ring) send(family uint64, address []byte, text string) error {
	fd, err := r.do(opSocket, int(family), unix.SOCK_STREAM, 0, 0)
	if err != nil {
		return err
	}
	data := []byte(text)
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&data[0])
	pinner.Pin(&address[0])
	if _, err := r.do(opConnect, fd, uint64(len(address)), uint64(uintptr(unsafe.Pointer(&address[0]))), 0); err != nil {
		return err
	}
	_, err = r.do(opSend, fd, 0, uint64(uintptr(unsafe.Pointer(&data[0]))), uint32(len(data)))
	return err
}

// sockaddrLoopback returns a struct sockaddr_in of 127.0.0.1.
func (t *trial) sockaddrLoopback() []byte {
	address := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
	address = binary.BigEndian.AppendUint16(address, uint16(t.Port))
	return append(address, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
}

func uringTCP(t *trial) error {
	r, err := newRing()
	if err != nil {
		return err
	}
	return r.send(unix.AF_INET, t.sockaddrLoopback(), t.Token())
}

func uringUnix(t *trial) error {
	r, err := newRing()
	if err != nil {
		return err
	}

	return r.send(unix.AF_UNIX, sockaddrUnix(t.At["stream"]), t.Token())
}
