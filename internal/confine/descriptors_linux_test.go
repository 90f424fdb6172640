//go:build linux && (amd64 || arm64)

package confine

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCheckStream(t *testing.T) {
	open := func(path string, flags int) int {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	socket := func(family, kind int) int {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	pair := func(kind int) int {
		fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
		return fds[0]
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tcp, err := conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	for _, c := range []struct {
		name   string
		fd     int
		passes bool
	}{
		{"a pipe", int(read.Fd()), true},
		{"a file", open(os.Args[0], unix.O_RDONLY), true},
		{"a file of /proc", open("/proc/self/status", unix.O_RDONLY), true},
		{"/dev/null", open("/dev/null", unix.O_RDWR), true},
		{"a closed descriptor", 1 << 20, true},
		{"a connected Unix socket", pair(unix.SOCK_STREAM), true},
		{"a connected seqpacket socket", pair(unix.SOCK_SEQPACKET), true},
		{"a Unix datagram socket", pair(unix.SOCK_DGRAM), false},
		{"a Unix socket without a peer", socket(unix.AF_UNIX, unix.SOCK_STREAM), false},
		{"a TCP connection", int(tcp.Fd()), false},
		{"a TCP socket", socket(unix.AF_INET, unix.SOCK_STREAM), false},
		{"a UDP socket", socket(unix.AF_INET6, unix.SOCK_DGRAM), false},
		{"a folder", open("/", unix.O_RDONLY|unix.O_DIRECTORY), false},
		{"the path of a folder", open("/", unix.O_PATH), false},
		{"a namespace", open("/proc/self/ns/net", unix.O_RDONLY), false},
		{"a process", pidfd, false},
	} {
		if err := checkStream(c.fd); (err == nil) != c.passes {
			t.Errorf("%s: got %v, want it passed on: %v", c.name, err, c.passes)
		}
	}
}
