//go:build linux && (amd64 || arm64)

package escapes

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

// openDescriptors opens what the attempts inherit.
func (o *Outside) openDescriptors() error {
	if err := errors.Join(o.giveListener(), o.giveConnection(), o.givePairs()); err != nil {
		return err
	}
	if err := errors.Join(
		o.Give("unixgram")(unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)),
		o.Give("path")(unix.Open(o.World.At["stream"], unix.O_PATH|unix.O_CLOEXEC, 0)),
		o.Give("network")(unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)),
		o.Give("proc")(unix.Open("/proc/"+strconv.Itoa(o.StandIn.PID), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)),
	); err != nil {
		return err
	}
	if o.World.Missing["raw"] == "" {
		if err := o.Give("raw")(unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)); err != nil {
			return err
		}
	}
	o.Missing("tun", o.giveTun())
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
	if err := o.giveFile("listener", file); err != nil {
		return err
	}
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	o.OnClose(func() { conn.Close() })
	go o.Watch(conn, conn)
	return nil
}

// giveFile gives the descriptor of a file.
func (o *Outside) giveFile(name string, file *os.File) error {
	defer file.Close()
	return o.Give(name)(unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0))
}

// giveConnection gives a connection to a target.
func (o *Outside) giveConnection() error {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.World.Port)))
	if err != nil {
		return err
	}
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	return o.giveFile("reconnect", file)
}

// givePairs gives one of two pairs of Unix sockets. At the other end of the second is a process that
// passes connections on.
func (o *Outside) givePairs() error {
	for name, serve := range map[string]func(int){"unix": o.readFD, "scm": o.passConnection} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := o.Give(name)(pair[0], nil); err != nil {
			return err
		}
		serve(pair[1])
	}
	return nil
}

// passConnection passes a connection to each process that sends something to a socket.
func (o *Outside) passConnection(fd int) {
	o.OnClose(func() { unix.Shutdown(fd, unix.SHUT_RDWR) })
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
	file, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq("rgtun0")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(int(file.Fd()), unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("TUNSETIFF: %w", err)
	}
	if err := o.giveFile("tun", file); err != nil {
		return err
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
	o.IPCKey = 0x5247_0000 + os.Getpid()&0xffff
	o.Missing("sysv message", o.shareMessages())
	o.Missing("mqueue", o.shareQueue())
	o.Missing("bpf", o.shareMap())
	return nil
}

func (o *Outside) shareMessages() error {
	id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(o.IPCKey), unix.IPC_CREAT|unix.IPC_EXCL|0o666, 0)
	if errno != 0 {
		return fmt.Errorf("msgget: %w", errno)
	}
	o.OnClose(func() { unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) }) // ends msgrcv too
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
			o.Record(message[8 : 8+n])
		}
	}()
	return nil
}

func (o *Outside) shareQueue() error {
	o.Queue = o.World.Run
	fd, err := mqOpen(o.Queue, unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return fmt.Errorf("mq_open: %w", err)
	}
	// The mode above is subject to the umask.
	_ = unix.Fchmod(fd, 0o666)
	file := os.NewFile(uintptr(fd), "queue")
	name := append([]byte(o.Queue), 0)
	o.OnClose(func() {
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
			o.Record(message[:n])
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
	o.OnClose(func() { unix.Close(fd) })
	memory, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	defer unix.Munmap(memory)
	copy(memory[8:], o.Secret)
	key := uint64(uintptr(unsafe.Pointer(&memory[0])))
	_, err = bpf(unix.BPF_MAP_UPDATE_ELEM, []uint64{uint64(fd), key, key + 8, 0})
	return wrap("BPF", err)
}

// openTerminal makes the terminal of the attempts. What they type into it comes back as an echo.
func (o *Outside) openTerminal() error {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		o.Missing("terminal", err)
		return nil
	}
	o.OnClose(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		o.Missing("terminal", err)
		return nil
	}
	name := "/dev/pts/" + strconv.Itoa(number)
	if o.tty, err = os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		o.Missing("terminal", err)
		return nil
	}
	o.OnClose(func() { o.tty.Close() })
	o.Missing("terminal", o.release(name))
	if legacy, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti"); err == nil && legacy[0] == '0' {
		o.Missing("terminal", errors.New("the kernel has switched TIOCSTI off"))
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
			o.Record(received)
		}
	}()
	return nil
}

// copyPrograms makes programs with more privileges than the user has.
func (o *Outside) copyPrograms() error {
	w := &o.World
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
	if o.SetUID, err = copyTo("setuid", 0o755|os.ModeSetuid); err != nil {
		return err
	}
	if o.FileCaps, err = copyTo("caps", 0o755); err != nil {
		return err
	}
	const capabilities = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_SYS_CHROOT
	attribute := binary.LittleEndian.AppendUint32(nil, 0x02000001) // revision 2, effective: capabilities(7)
	attribute = binary.LittleEndian.AppendUint32(attribute, capabilities)
	attribute = append(attribute, make([]byte, 12)...)
	o.Missing("privileged programs", wrap("file capabilities", unix.Setxattr(o.FileCaps, "security.capability", attribute, 0)))
	return nil
}

// checkKernel notes what the kernel lacks.
func (o *Outside) checkKernel() error {
	if agents, _ := filepath.Glob("/sys/fs/cgroup/*/release_agent"); len(agents) == 0 {
		o.Missing("cgroup", errors.New("no cgroup of version 1 is mounted"))
	}
	if max, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err != nil || string(max) == "0\n" {
		o.Missing("userns", errors.New("the kernel permits no user namespaces"))
	}
	if r, err := newRing(); err != nil {
		o.Missing("io_uring", err)
	} else {
		unix.Close(r.fd)
	}
	o.Missing("i386", try32())
	return nil
}
