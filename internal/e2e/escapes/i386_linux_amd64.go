package escapes

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// int80 makes a system call by the numbers and the structures of 32-bit programs.
//
//go:noescape
func int80(number, a, b, c uint32) int32

// Numbers of 32-bit calls.
const (
	i386Exit    = 1
	i386Write   = 4
	i386Ioctl   = 54
	i386Socket  = 359
	i386Connect = 362
)

func call32(number, a, b, c uint32) (uint32, error) {
	result := int80(number, a, b, c)
	if result < 0 && result > -4096 {
		return 0, fmt.Errorf("call %d of 32-bit programs: %w", number, syscall.Errno(-result))
	}
	return uint32(result), nil
}

// low returns memory that 32 bits can address.
func low() ([]byte, uint32, error) {
	address, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_32BIT, ^uintptr(0), 0)
	if errno != 0 {
		return nil, 0, errno
	}
	return bytesAt(address, 4096), uint32(address), nil
}

func int80TCP(t *trial) error {
	memory, at, err := low()
	if err != nil {
		return err
	}
	copy(memory, t.sockaddrLoopback())
	n := copy(memory[16:], t.Token())
	fd, err := call32(i386Socket, unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if _, err := call32(i386Connect, fd, at, 16); err != nil {
		return err
	}
	_, err = call32(i386Write, fd, at+16, uint32(n))
	return err
}

// int80Ioctl makes an ioctl with one byte as its argument.
func int80Ioctl(fd int, request uint32, argument byte) error {
	memory, at, err := low()
	if err != nil {
		return err
	}
	memory[0] = argument
	_, err = call32(i386Ioctl, uint32(fd), request, at)
	return err
}

// elf32TCP writes and runs a 32-bit program that sends the token.
func elf32TCP(t *trial) error {
	const base, headers = 0x08048000, 52 + 32
	code := []byte{}
	move := func(register byte, value uint32) {
		code = binary.LittleEndian.AppendUint32(append(code, 0xb8+register), value)
	}
	const eax, ecx, edx, ebx = 0, 1, 2, 3
	const length = 95 // of the code
	call := func(number uint32) { move(eax, number); code = append(code, 0xcd, 0x80) }
	move(ebx, unix.AF_INET)
	move(ecx, unix.SOCK_STREAM)
	move(edx, 0)
	call(i386Socket)
	code = append(code, 0x89, 0xc3) // mov %eax, %ebx
	move(ecx, base+headers+length)
	move(edx, 16)
	call(i386Connect)
	move(ecx, base+headers+length+16)
	move(edx, uint32(len(t.Token())))
	call(i386Write)
	move(ebx, 0)
	call(i386Exit)
	code = append(code, make([]byte, length-len(code))...)

	elf := []byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0}
	word := func(values ...uint32) {
		for _, v := range values {
			elf = binary.LittleEndian.AppendUint32(elf, v)
		}
	}
	word(base+headers, 52, 0, 0)                             // entry, program headers, no sections, flags
	elf = append(elf, 52, 0, 32, 0, 1, 0, 40, 0, 0, 0, 0, 0) // sizes and numbers of headers
	size := uint32(headers + length + 16 + len(t.Token()))
	word(1, 0, base, base, size, size, 7, 4096) // one segment, which is loaded
	elf = append(append(append(elf, code...), t.sockaddrLoopback()...), t.Token()...)

	file := filepath.Join(t.Dir, t.Name)
	defer os.Remove(file)
	if err := os.WriteFile(file, elf, 0o700); err != nil {
		return err
	}
	return exec.Command(file).Run()
}

// try32 returns an error if the kernel has no 32-bit calls.
func try32() error {
	const getpid = 20
	_, err := call32(getpid, 0, 0, 0)
	return err
}
