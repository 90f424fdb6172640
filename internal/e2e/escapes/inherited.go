//go:build linux && (amd64 || arm64)

package escapes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"robotsgate/internal/confine/attempts"
)

// inherited has descriptors that the shell left open.
var inherited = []Attempt{
	{Name: "fd-listener", Tries: "accept a connection from outside on an inherited socket", try: fdListener},
	{Name: "fd-unix", Tries: "write to an inherited Unix socket", try: fdWrite("unix")},
	{Name: "fd-reconnect", Tries: "connect an inherited TCP connection anew", try: fdReconnect},
	{Name: "fd-abstract", Tries: "send to an abstract name with a Unix socket that was made outside", try: func(t *trial) error {
		return unix.Sendto(t.FDs["unixgram"], []byte(t.Token()), 0, &unix.SockaddrUnix{Name: t.At["abstract dgram"]})
	}},
	{Name: "fd-fchdir", Tries: "connect to a Unix socket from an inherited folder", try: func(t *trial) error {
		if err := unix.Fchdir(t.FDs["folder"]); err != nil {
			return err
		}
		return t.Send("unix", filepath.Base(t.At["stream"]), t.Token())
	}},
	{Name: "fd-path", Tries: "connect to a Unix socket through an inherited descriptor of its file", try: func(t *trial) error {
		return t.Send("unix", fmt.Sprintf("/proc/self/fd/%d", t.FDs["path"]), t.Token())
	}},
	{Name: "fd-network", Tries: "enter an inherited network namespace", Root: true, try: func(t *trial) error {
		return t.join(t.FDs["network"], unix.CLONE_NEWNET)
	}},
	{Name: "fd-proc", Tries: "open a descriptor of a process outside through an inherited folder of /proc", try: func(t *trial) error {
		fd, err := unix.Openat(t.FDs["proc"], "fd/1", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte(t.Token()+"\n"))
		return err
	}},
	{Name: "fd-raw", Tries: "send with an inherited raw socket", Root: true, Needs: []string{"raw"}, try: func(t *trial) error {
		home := [4]byte{127, 0, 0, 1}
		return unix.Sendto(t.FDs["raw"], udpPacket(home, home, t.Port, t.Token()), 0, &unix.SockaddrInet4{Addr: home})
	}},
	{Name: "fd-tun", Tries: "send packets with an inherited network device", Needs: []string{"tun"}, try: func(t *trial) error {
		_, err := unix.Write(t.FDs["tun"], udpPacket([4]byte{10, 83, 53, 2}, [4]byte{10, 83, 53, 1}, t.Port, t.Token()))
		return err
	}},
	{Name: "fd-scm-rights", Tries: "receive a connection over an inherited Unix socket", try: fdReceive},
}

// keep returns an inherited descriptor as a file that stays open for other attempts.
func (t *trial) keep(name string) (*os.File, error) {
	fd, err := unix.Dup(t.FDs[name])
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", t.FDs[name], err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func fdListener(t *trial) error {
	file, err := t.keep("listener")
	if err != nil {
		return err
	}
	listener, err := net.FileListener(file)
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	return attempts.Exchange(conn, t.Token())
}

func fdWrite(name string) func(*trial) error {
	return func(t *trial) error {
		file, err := t.keep(name)
		if err != nil {
			return err
		}
		defer file.Close()
		conn, err := net.FileConn(file)
		if err != nil {
			return err
		}
		defer conn.Close()
		return attempts.Exchange(conn, t.Token())
	}
}

func fdConnect(t *trial, fd int, to unix.Sockaddr) error {
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	return unix.Sendto(fd, []byte(t.Token()), 0, nil)
}

// fdReconnect dissolves the association of a connected socket (connect(2), AF_UNSPEC) and connects
// it to another address.
func fdReconnect(t *trial) error {
	fd := t.FDs["reconnect"]
	var unspecified [16]byte
	if err := connectBytes(fd, unspecified[:]); err != nil {
		return fmt.Errorf("disconnect: %w", err)
	}
	return fdConnect(t, fd, t.Loopback())
}

// fdReceive asks a process outside for a connection.
func fdReceive(t *trial) error {
	fd := t.FDs["scm"]
	if err := unix.Sendto(fd, []byte("a connection, please"), 0, nil); err != nil {
		return err
	}
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 100), control, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return errors.Join(err, errors.New("no descriptor in the message"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fds[0]), "received")
	conn, err := net.FileConn(file)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	return attempts.Exchange(conn, t.Token())
}
