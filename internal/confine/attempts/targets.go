//go:build linux && (amd64 || arm64)

package attempts

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Serve records the tokens that a listener receives, until Close.
func (o *Outside) Serve(listener net.Listener) {
	o.OnClose(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go o.Watch(conn, conn)
		}
	}()
}

// Watch records the tokens that r has, until its end, and answers as an HTTP server would.
func (o *Outside) Watch(r io.ReadCloser, answers io.Writer) {
	defer r.Close()
	var received []byte
	part := make([]byte, 4096)
	for {
		n, err := r.Read(part)
		if err != nil {
			return
		}
		received = append(received[max(0, len(received)-4096):], part[:n]...)
		o.Record(received)
		if _, err := io.WriteString(answers, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}

// Receive records datagrams, and answers each that has a sender.
func (o *Outside) Receive(conn net.PacketConn) {
	o.OnClose(func() { conn.Close() })
	go func() {
		data := make([]byte, 65536)
		for {
			n, from, err := conn.ReadFrom(data)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil && o.Record(data[:n]) && from != nil && from.String() != "" {
				_, _ = conn.WriteTo([]byte("ok"), from)
			}
		}
	}()
}

// listenInternet starts the targets for TCP, UDP and DNS.
func (o *Outside) listenInternet() (err error) {
	w := &o.World
	for range 10 { // a number that is free for TCP may be in use for UDP
		if w.Port, err = o.listenBoth(":0"); err == nil {
			break
		}
	}
	w.At["resolver"] = "127.83.53.53:53"
	_, resolverErr := o.listenBoth(w.At["resolver"])
	o.Missing("resolver", resolverErr)
	const none = "this machine has no such address"
	w.Missing["ipv4"], w.Missing["ipv6"], w.Missing["ipv6 local"] = none, none, none
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		kind := "ipv4"
		switch ip := prefix.Addr(); {
		case ip == netip.IPv6Loopback():
			kind = "ipv6"
		case !ip.IsGlobalUnicast():
			continue
		case ip.Is6():
			kind = "ipv6 local"
		}
		w.At[kind] = prefix.Addr().String()
		delete(w.Missing, kind)
	}
	return err
}

// listenBoth starts targets for TCP and UDP with one address.
func (o *Outside) listenBoth(address string) (port int, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return 0, err
	}
	port = listener.Addr().(*net.TCPAddr).Port
	host, _, _ := net.SplitHostPort(address)
	conn, err := net.ListenPacket("udp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		listener.Close()
		return 0, err
	}
	o.Serve(listener)
	o.Receive(conn)
	return port, nil
}

// listenUnix starts the targets with Unix sockets.
func (o *Outside) listenUnix() error {
	run := "/run"
	if os.Getuid() != 0 {
		run = os.Getenv("XDG_RUNTIME_DIR")
	}
	o.Missing("run", o.ListenUnix("run", "unix", run+"/"+o.World.Run))
	return errors.Join(
		o.ListenUnix("stream", "unix", filepath.Join(o.World.Dir, "stream.sock")),
		o.ListenUnix("dgram", "unixgram", filepath.Join(o.World.Dir, "dgram.sock")),
		o.ListenUnix("abstract stream", "unix", "@"+o.World.Run+"/stream"),
		o.ListenUnix("abstract dgram", "unixgram", "@"+o.World.Run+"/dgram"))
}

// ListenUnix starts a target with a Unix socket.
func (o *Outside) ListenUnix(kind, network, path string) error {
	o.World.At[kind] = path
	address := &net.UnixAddr{Name: path, Net: network}
	if network == "unixgram" {
		conn, err := net.ListenUnixgram(network, address)
		if err == nil {
			o.Receive(conn)
		}
		return err
	}
	listener, err := net.ListenUnix(network, address)
	if err == nil {
		o.Serve(listener)
	}
	return err
}

// openDescriptors opens what the attempts inherit.
func (o *Outside) openDescriptors() error {
	connection, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return errors.Join(
		o.Give("connection")(connection, err),
		unix.Connect(connection, o.World.Loopback()),
		o.Give("unconnected")(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)),
		o.Give("udp")(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)),
		o.Give("folder")(unix.Open(o.World.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)),
		o.Give("pidfd")(unix.PidfdOpen(os.Getpid(), 0)))
}

// Give returns a function that lets the attempts inherit a descriptor, the result of a system call. The first
// becomes 3 (os/exec.Cmd.ExtraFiles).
func (o *Outside) Give(name string) func(fd int, err error) error {
	return func(fd int, err error) error {
		o.World.FDs[name] = 3 + len(o.files)
		file := os.NewFile(uintptr(fd), name)
		o.files = append(o.files, file)
		o.OnClose(func() { file.Close() })
		return err
	}
}

// showProcess makes this process the one that attempts try to use: it receives their signals, and has a pipe.
func (o *Outside) showProcess() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	o.OnClose(func() { w.Close() })
	go o.Watch(r, io.Discard)
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGUSR1)
	go func() {
		for range arrived {
			o.Record([]byte(o.World.Token("kill")))
		}
	}()
	o.World.PID, o.World.Pipe = os.Getpid(), int(w.Fd())
	return nil
}

// share keeps the secret in a key of the user and in shared memory.
func (o *Outside) share() error {
	key, err := unix.AddKey("user", o.World.Run, []byte(o.Secret), unix.KEY_SPEC_USER_KEYRING)
	o.Missing("user key", err)
	_ = unix.KeyctlSetperm(key, 0x3f3f0000) // the user may read it, not only processes that possess it
	unix.KeyctlInt(unix.KEYCTL_SET_TIMEOUT, key, 600, 0, 0)
	o.World.Key, o.World.IPC = key, 0x5247_0000+os.Getpid()&0xffff
	memory, id, err := attach(o.World.IPC, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	o.Missing("sysv", err)
	copy(memory, o.Secret)
	o.OnClose(func() {
		unix.KeyctlInt(unix.KEYCTL_UNLINK, key, unix.KEY_SPEC_USER_KEYRING, 0, 0)
		unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	})
	return nil
}
