//go:build linux && (amd64 || arm64)

package attempts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// give lets the attempts inherit a descriptor. The first becomes 3 (os/exec.Cmd.ExtraFiles).
func (o *Outside) give(name string, f *os.File) {
	o.World.FDs[name] = 3 + len(o.files)
	o.files = append(o.files, f)
}

// giveFD gives the result of a system call.
func (o *Outside) giveFD(name string, fd int, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o.give(name, os.NewFile(uintptr(fd), name))
	return nil
}

// openDescriptors opens what the attempts inherit.
func (o *Outside) openDescriptors() error {
	if err := errors.Join(o.giveListener(), o.giveConnections(), o.givePairs()); err != nil {
		return err
	}
	socket := func(name string, family, kind, protocol int) error {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		return o.giveFD(name, fd, err)
	}
	open := func(name, path string, flags int) error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		return o.giveFD(name, fd, err)
	}
	process := "/proc/" + strconv.Itoa(o.World.StandIn.PID)
	pidfd, err := unix.PidfdOpen(o.World.StandIn.PID, 0)
	if err := errors.Join(
		o.giveFD("pidfd", pidfd, err),
		socket("unconnected", unix.AF_INET, unix.SOCK_STREAM, 0),
		socket("udp", unix.AF_INET, unix.SOCK_DGRAM, 0),
		socket("unixgram", unix.AF_UNIX, unix.SOCK_DGRAM, 0),
		open("folder", o.World.Dir, unix.O_RDONLY|unix.O_DIRECTORY),
		open("path", o.World.Unix["stream"], unix.O_PATH),
		open("network", "/proc/self/ns/net", unix.O_RDONLY),
		open("proc", process, unix.O_RDONLY|unix.O_DIRECTORY),
	); err != nil {
		return err
	}
	if o.World.Missing["raw"] == "" {
		if err := socket("raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW); err != nil {
			return err
		}
	}
	o.missing("tun", o.giveTun())
	return nil
}

// giveListener gives a listener, to which a process outside connects.
func (o *Outside) giveListener() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	o.give("listener", file)
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	o.onClose(func() { conn.Close() })
	go o.converse(conn)
	return nil
}

// giveConnections gives connections to a target.
func (o *Outside) giveConnections() error {
	for _, name := range []string{"connection", "reconnect"} {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.World.Port)))
		if err != nil {
			return err
		}
		file, err := conn.(*net.TCPConn).File()
		conn.Close()
		if err != nil {
			return err
		}
		o.give(name, file)
	}
	return nil
}

// givePairs gives one of two pairs of Unix sockets. At the other end of the second is a process that
// passes connections on.
func (o *Outside) givePairs() error {
	for name, serve := range map[string]func(int){"unix": o.readFD, "scm": o.passConnection} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		o.give(name, os.NewFile(uintptr(pair[0]), name))
		serve(pair[1])
	}
	return nil
}

// passConnection passes a connection to each process that sends something to a socket.
func (o *Outside) passConnection(fd int) {
	o.onClose(func() { unix.Shutdown(fd, unix.SHUT_RDWR) })
	go func() {
		defer unix.Close(fd)
		for {
			n, err := unix.Read(fd, make([]byte, 100))
			if err != nil || n == 0 {
				return
			}
			conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.World.Port)))
			if err != nil {
				return
			}
			file, err := conn.(*net.TCPConn).File()
			conn.Close()
			if err != nil {
				return
			}
			_ = unix.Sendmsg(fd, []byte("here"), unix.UnixRights(int(file.Fd())), nil, 0)
			file.Close()
		}
	}()
}

// giveTun gives a new network device (Documentation/networking/tuntap.rst).
func (o *Outside) giveTun() error {
	if !o.options.Prepare {
		return errors.New("no network device is added to this machine")
	}
	file, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	o.give("tun", file)
	request, err := unix.NewIfreq("rgtun0")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(int(file.Fd()), unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("TUNSETIFF: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	set := func(what uint, fill func(*unix.Ifreq) error) error {
		request, err := unix.NewIfreq("rgtun0")
		if err != nil {
			return err
		}
		return errors.Join(fill(request), unix.IoctlIfreq(fd, what, request))
	}
	return errors.Join(
		set(unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{10, 83, 53, 1}) }),
		set(unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{255, 255, 255, 0}) }),
		set(unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }),
	)
}

// shareMemory makes the targets that the kernel keeps: System V and POSIX messages, a BPF map.
func (o *Outside) shareMemory() error {
	w := &o.World
	w.IPCKey = 0x5247_0000 + os.Getpid()&0xffff
	o.missing("sysv", errors.Join(o.shareSegment(), o.shareMessages()))
	o.missing("mqueue", o.shareQueue())
	o.missing("bpf", o.shareMap())
	return nil
}

func (o *Outside) shareSegment() error {
	id, _, errno := unix.Syscall(unix.SYS_SHMGET, uintptr(o.World.IPCKey), 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if errno != 0 {
		return fmt.Errorf("shmget: %w", errno)
	}
	address, _, errno := unix.Syscall(unix.SYS_SHMAT, id, 0, 0)
	if errno != 0 {
		return fmt.Errorf("shmat: %w", errno)
	}
	copy(bytesAt(address, 4096), o.secret("shared"))
	o.onClose(func() {
		unix.Syscall(unix.SYS_SHMDT, address, 0, 0)
		unix.Syscall(unix.SYS_SHMCTL, id, unix.IPC_RMID, 0)
	})
	return nil
}

func (o *Outside) shareMessages() error {
	id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(o.World.IPCKey), unix.IPC_CREAT|unix.IPC_EXCL|0o666, 0)
	if errno != 0 {
		return fmt.Errorf("msgget: %w", errno)
	}
	o.onClose(func() { unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) }) // ends msgrcv too
	go func() {
		message := make([]byte, 4096)
		for {
			n, _, errno := unix.Syscall6(unix.SYS_MSGRCV, id, uintptr(unsafe.Pointer(&message[0])), 4000, 0, 0, 0)
			if errno == unix.EINTR {
				continue
			}
			if errno != 0 {
				return
			}
			o.record(message[8 : 8+n])
		}
	}()
	return nil
}

func (o *Outside) shareQueue() error {
	o.World.Queue = o.World.Run
	fd, err := mqOpen(o.World.Queue, unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return fmt.Errorf("mq_open: %w", err)
	}
	// The mode above is subject to the umask.
	_ = unix.Fchmod(fd, 0o666)
	file := os.NewFile(uintptr(fd), "queue")
	name := append([]byte(o.World.Queue), 0)
	o.onClose(func() {
		unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])), 0, 0)
		file.Close()
	})
	connection, err := file.SyscallConn()
	if err != nil {
		return err
	}
	go connection.Read(func(fd uintptr) bool {
		message := make([]byte, 65536)
		n, _, errno := unix.Syscall6(unix.SYS_MQ_TIMEDRECEIVE, fd, uintptr(unsafe.Pointer(&message[0])), uintptr(len(message)), 0, 0, 0)
		if errno == 0 {
			o.record(message[:n])
		}
		return errno == unix.EBADF
	})
	return nil
}

// shareMap makes a BPF map with a secret (bpf(2)).
func (o *Outside) shareMap() error {
	const array = 2
	sizes := binary.NativeEndian.AppendUint32(nil, 128) // of a value, and number of entries
	sizes = binary.NativeEndian.AppendUint32(sizes, 1)
	fd, err := bpf(unix.BPF_MAP_CREATE, []uint64{array | 4<<32, binary.NativeEndian.Uint64(sizes), 0})
	if err != nil {
		return wrap("BPF", err)
	}
	o.onClose(func() { unix.Close(fd) })
	memory, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	defer unix.Munmap(memory)
	copy(memory[8:], o.secret("bpf"))
	key := uint64(uintptr(unsafe.Pointer(&memory[0])))
	_, err = bpf(unix.BPF_MAP_UPDATE_ELEM, []uint64{uint64(fd), key, key + 8, 0})
	return wrap("BPF", err)
}

// openTerminal makes the terminal of the attempts. What they type into it comes back as an echo.
func (o *Outside) openTerminal() error {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		o.missing("terminal", err)
		return nil
	}
	o.onClose(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		o.missing("terminal", err)
		return nil
	}
	name := "/dev/pts/" + strconv.Itoa(number)
	if o.tty, err = os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		o.missing("terminal", err)
		return nil
	}
	o.onClose(func() { o.tty.Close() })
	o.missing("terminal", o.release(name))
	if legacy, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti"); err == nil && legacy[0] == '0' {
		o.missing("terminal", errors.New("the kernel has switched TIOCSTI off"))
	}
	go func() {
		var received []byte
		data := make([]byte, 4096)
		for {
			n, err := master.Read(data)
			if err != nil {
				return
			}
			received = append(received[max(0, len(received)-4096):], data[:n]...)
			o.record(received)
		}
	}()
	return nil
}

// copyPrograms makes programs with more privileges than the user has.
func (o *Outside) copyPrograms() error {
	w := &o.World
	if !o.options.Prepare {
		o.missing("privileged programs", errors.New("no program gets root's privileges for it"))
		return nil
	}
	copyTo := func(name string, mode os.FileMode) (string, error) {
		dir := filepath.Join(w.Dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", err
		}
		path := filepath.Join(dir, filepath.Base(w.Self[0]))
		from, err := os.Open(w.Self[0])
		if err != nil {
			return "", err
		}
		defer from.Close()
		to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(to, from)
		return path, errors.Join(err, to.Close(), os.Chmod(path, mode))
	}
	var err error
	if w.SetUID, err = copyTo("setuid", 0o755|os.ModeSetuid); err != nil {
		return err
	}
	if w.FileCaps, err = copyTo("caps", 0o755); err != nil {
		return err
	}
	const capabilities = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_SYS_CHROOT
	attribute := binary.LittleEndian.AppendUint32(nil, 0x02000001) // revision 2, effective: capabilities(7)
	attribute = binary.LittleEndian.AppendUint32(attribute, capabilities)
	attribute = append(attribute, make([]byte, 12)...)
	o.missing("privileged programs", wrap("file capabilities", unix.Setxattr(w.FileCaps, "security.capability", attribute, 0)))
	return nil
}

// checkKernel notes what the kernel lacks.
func (o *Outside) checkKernel() error {
	if agents, _ := filepath.Glob("/sys/fs/cgroup/*/release_agent"); len(agents) == 0 {
		o.missing("cgroup", errors.New("no cgroup of version 1 is mounted"))
	}
	if max, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err != nil || string(max) == "0\n" {
		o.missing("userns", errors.New("the kernel permits no user namespaces"))
	}
	if r, err := newRing(); err != nil {
		o.missing("io_uring", err)
	} else {
		unix.Close(r.fd)
	}
	o.missing("i386", try32())
	return nil
}
