//go:build linux && (amd64 || arm64)

package escapes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processes has ways to use a process outside that has the gate's user.
var processes = []Attempt{
	{Name: "ptrace", Tries: "read the memory of a process outside with ptrace", try: func(t *trial) error { return t.each(t.ptrace) }},
	{Name: "process-vm-read", Tries: "read the memory of a process outside with process_vm_readv", try: func(t *trial) error { return t.each(t.vmRead) }},
	{Name: "process-vm-write", Tries: "write the memory of a process outside with process_vm_writev", try: func(t *trial) error { return t.each(t.vmWrite) }},
	{Name: "proc-mem-read", Tries: "read /proc/PID/mem of a process outside", try: func(t *trial) error { return t.each(t.memRead) }},
	{Name: "proc-mem-write", Tries: "write /proc/PID/mem of a process outside", try: func(t *trial) error { return t.each(t.memWrite) }},
	{Name: "proc-fd", Tries: "open a descriptor of a process outside in /proc/PID/fd", try: func(t *trial) error { return t.each(t.procFD) }},
	{Name: "pidfd-getfd", Tries: "take a descriptor of a process outside", try: func(t *trial) error { return t.each(t.pidfdGetfd) }},
	{Name: "pidfd-handle", Tries: "open a process outside by its file handle", Needs: []string{"pidfd handle"}, try: func(t *trial) error {
		fd, err := t.openHandle(t.StandIn.HandleType[0], t.StandIn.PIDHandle, "pidfd")
		if err != nil {
			return err
		}
		return t.take(fd)
	}},
	{Name: "kill-thread", Tries: "send a signal to a thread outside", try: func(t *trial) error {
		return unix.Tgkill(t.StandIn.PID, t.StandIn.PID, unix.SIGUSR2)
	}},
	{Name: "kill-pidfd", Tries: "send a signal with a pidfd", try: func(t *trial) error {
		fd, err := unix.PidfdOpen(t.StandIn.PID, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, unix.SIGHUP, nil, 0)
	}},
}

func (t *trial) ptrace(pid int) error {
	if err := unix.PtraceSeize(pid); err != nil {
		return fmt.Errorf("seize: %w", err)
	}
	defer unix.PtraceDetach(pid)
	if err := unix.PtraceInterrupt(pid); err != nil {
		return fmt.Errorf("interrupt: %w", err)
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	data := make([]byte, t.StandIn.SecretSize)
	if _, err := unix.PtracePeekData(pid, t.StandIn.Secret, data); err != nil {
		return fmt.Errorf("peek: %w", err)
	}
	return t.read(data)
}

func (t *trial) vmRead(pid int) error {
	data := make([]byte, t.StandIn.SecretSize)
	local := []unix.Iovec{{Base: &data[0], Len: uint64(len(data))}}
	remote := []unix.RemoteIovec{{Base: t.StandIn.Secret, Len: len(data)}}
	if _, err := unix.ProcessVMReadv(pid, local, remote, 0); err != nil {
		return err
	}
	return t.read(data)
}

func (t *trial) vmWrite(pid int) error {
	data := []byte(t.Token())
	local := []unix.Iovec{{Base: &data[0], Len: uint64(len(data))}}
	remote := []unix.RemoteIovec{{Base: t.StandIn.Buffer, Len: len(data)}}
	_, err := unix.ProcessVMWritev(pid, local, remote, 0)
	return err
}

func (t *trial) memRead(pid int) error {
	file, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	defer file.Close()
	data := make([]byte, t.StandIn.SecretSize)
	if _, err := file.ReadAt(data, int64(t.StandIn.Secret)); err != nil {
		return err
	}
	return t.read(data)
}

func (t *trial) memWrite(pid int) error {
	file, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteAt([]byte(t.Token()), int64(t.StandIn.Buffer)+128)
	return err
}

// procFD writes to the standard output of another process. It tries only pipes, as the stand-in's is:
// the terminal and files of others are no way out.
func (t *trial) procFD(pid int) error {
	if pid != t.StandIn.PID {
		return t.procSockets(pid)
	}
	file, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", pid), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(t.Token() + "\n")
	return err
}

// procSockets looks for network namespaces and pidfds that another process has open.
func (t *trial) procSockets(pid int) error {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%s", pid, entry.Name()), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Setns(fd, unix.CLONE_NEWNET) == nil {
			return t.dial("tcp4", "127.0.0.1")
		}
		unix.Close(fd)
	}
	return errors.New("no descriptor leads out")
}

func (t *trial) pidfdGetfd(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return t.take(fd)
}

// take takes the standard output of a process outside, of which the target reads the other end.
func (t *trial) take(pidfd int) error {
	fd, err := unix.PidfdGetfd(pidfd, 1, 0)
	if err != nil {
		return fmt.Errorf("pidfd_getfd: %w", err)
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(t.Token()+"\n"))
	return err
}

// openHandle opens the file of a handle. The file systems of pidfds and namespaces are found by any
// file of the same kind.
func (t *trial) openHandle(kind int32, handle []byte, of string) (int, error) {
	var mount int
	var err error
	if of == "pidfd" {
		mount, err = unix.PidfdOpen(os.Getpid(), 0)
	} else {
		mount, err = unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return 0, err
	}
	defer unix.Close(mount)
	fd, err := unix.OpenByHandleAt(mount, unix.NewFileHandle(kind, handle), unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("open_by_handle_at: %w", err)
	}
	return fd, nil
}

// bytesAt returns memory that mmap or shmat has given.
func bytesAt(address uintptr, size int) []byte {
	// The conversion through a pointer to the variable is what vet accepts for memory outside Go's heap.
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), size)
}

// connectBytes connects a socket to an address of any form.
func connectBytes(fd int, address []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	if errno != 0 {
		return errno
	}
	return nil
}

// sockaddrUnix returns a struct sockaddr_un.
func sockaddrUnix(path string) []byte {
	return append(append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), path...), 0)
}
