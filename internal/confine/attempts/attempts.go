//go:build linux && (amd64 || arm64)

// Package attempts has ways by which a confined command could get around the gate: the attempts of
// doctor --confine. Each tries to reach a target outside. It sends the target a token or reads a
// secret there, and so succeeds if it is made without confinement.
//
// [Start] starts the targets. [Outside.Command] returns the command that makes the attempts, each in
// a process of its own, behind the words of another command, which confines it.
package attempts

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An Attempt is one way to reach something outside a confined command.
type Attempt struct {
	Name  string             // lower-case letters, digits and hyphens
	Tries string             // what it does, as an infinitive
	Needs []string           // keys of World.Missing: what must have been prepared outside
	Try   func(*Trial) error // the error says what it has seen
}

// A Trial is one attempt that is being made.
type Trial struct {
	*World
	Name string
}

// All returns the attempts of doctor --confine, in the order of the report. What stops them differs
// from machine to machine: namespaces, seccomp, the list of sockets, addresses and descriptors.
func All() []Attempt {
	return []Attempt{
		{Name: "tcp4-loopback", Tries: "connect to 127.0.0.1", Try: Dial("tcp4", "127.0.0.1")},
		{Name: "tcp4-local", Tries: "connect to this machine's IPv4 address", Needs: []string{"ipv4"}, Try: Dial("tcp4", "ipv4")},
		{Name: "tcp6-loopback", Tries: "connect to ::1", Needs: []string{"ipv6"}, Try: Dial("tcp6", "::1")},
		{Name: "tcp6-local", Tries: "connect to this machine's IPv6 address", Needs: []string{"ipv6 local"}, Try: Dial("tcp6", "ipv6 local")},
		{Name: "udp4-loopback", Tries: "send UDP to 127.0.0.1", Try: Dial("udp4", "127.0.0.1")},
		{Name: "udp4-local", Tries: "send UDP to this machine's IPv4 address", Needs: []string{"ipv4"}, Try: Dial("udp4", "ipv4")},
		{Name: "udp6-loopback", Tries: "send UDP to ::1", Needs: []string{"ipv6"}, Try: Dial("udp6", "::1")},
		{Name: "dns-udp", Tries: "carry data in a name, in a query over UDP", Needs: []string{"resolver"}, Try: func(t *Trial) error { return t.query("udp", t.At["resolver"]) }},
		{Name: "dns-tcp", Tries: "carry data in a name, in a query over TCP", Needs: []string{"resolver"}, Try: func(t *Trial) error { return t.query("tcp", t.At["resolver"]) }},
		{Name: "dns-other-port", Tries: "query a resolver on another port", Try: func(t *Trial) error { return t.query("udp", t.Host("127.0.0.1")) }},

		{Name: "unix-stream", Tries: "connect to a Unix stream socket", Try: Socket("unix", "stream")},
		{Name: "unix-dgram", Tries: "send to a Unix datagram socket", Try: Socket("unixgram", "dgram")},
		{Name: "abstract-stream", Tries: "connect to an abstract stream socket", Try: Socket("unix", "abstract stream")},
		{Name: "abstract-dgram", Tries: "send to an abstract datagram socket", Try: Socket("unixgram", "abstract dgram")},
		{Name: "unix-run", Tries: "connect to a Unix socket in /run", Needs: []string{"run"}, Try: Socket("unix", "run")},

		{Name: "fd-connection", Tries: "write to an inherited TCP connection", Try: func(t *Trial) error { return t.Write(t.FDs["connection"]) }},
		{Name: "fd-unconnected", Tries: "connect a TCP socket that was made outside", Try: func(t *Trial) error {
			if err := unix.Connect(t.FDs["unconnected"], t.Loopback()); err != nil {
				return err
			}
			return t.Write(t.FDs["unconnected"])
		}},
		{Name: "fd-udp", Tries: "send with a UDP socket that was made outside", Try: func(t *Trial) error {
			return unix.Sendto(t.FDs["udp"], []byte(t.Token()), 0, t.Loopback())
		}},
		{Name: "fd-folder", Tries: "connect to a Unix socket through an inherited folder", Try: func(t *Trial) error {
			return t.Send("unix", fmt.Sprintf("/proc/self/fd/%d/%s", t.FDs["folder"], filepath.Base(t.At["stream"])), t.Token())
		}},
		{Name: "fd-pidfd", Tries: "take a descriptor from an inherited pidfd", Try: func(t *Trial) error { return t.Take(t.FDs["pidfd"]) }},

		{Name: "kill", Tries: "send a signal to a process outside", Try: func(t *Trial) error { return unix.Kill(t.PID, unix.SIGUSR1) }},
		{Name: "key-by-number", Tries: "read a key by its serial number", Needs: []string{"user key"}, Try: readKey},
		{Name: "sysv-shared-memory", Tries: "read System V shared memory", Needs: []string{"sysv"}, Try: readShared},
	}
}

// Host returns the address of the targets of TCP and UDP at a host: an address, or a key of World.At.
func (w *World) Host(host string) string {
	return net.JoinHostPort(cmp.Or(w.At[host], host), strconv.Itoa(w.Port))
}

// Loopback returns the address of these targets at 127.0.0.1.
func (w *World) Loopback() *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: w.Port, Addr: [4]byte{127, 0, 0, 1}}
}

// Token returns what the attempt sends to a target to show that it has reached it.
func (t *Trial) Token() string { return t.World.Token(t.Name) }

// Dial returns an attempt that sends the token to a host, as [World.Host] has it.
func Dial(network, host string) func(*Trial) error {
	return func(t *Trial) error { return t.Send(network, t.Host(host), t.Token()) }
}

// Socket returns an attempt that sends the token to the Unix socket of a kind.
func Socket(network, kind string) func(*Trial) error {
	return func(t *Trial) error { return t.Send(network, t.At[kind], t.Token()) }
}

// Send connects, sends text and waits for the answer.
func (t *Trial) Send(network, address, text string) error {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	return Exchange(conn, text)
}

// Exchange sends text and reads the answer, so that text has arrived when it returns. An answer to a
// datagram may be missing.
func Exchange(conn net.Conn, text string) error {
	conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte(text)); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	return cmp.Or(err, fmt.Errorf("answer %.60q", answer[:n]))
}

// query sends a DNS query for the IPv4 address of a name that holds the token (RFC 1035, section 4).
func (t *Trial) query(network, server string) error {
	q := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(t.Token()+"outside.example", ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	q = append(q, 0, 0, 1, 0, 1)
	if network == "tcp" {
		q = append([]byte{byte(len(q) >> 8), byte(len(q))}, q...)
	}
	return t.Send(network, server, string(q))
}

// Write writes the token to an inherited descriptor, which stays open.
func (t *Trial) Write(fd int) error {
	_, err := unix.Write(fd, []byte(t.Token()+"\n"))
	return err
}

// Take takes the writing end of a pipe from a process outside.
func (t *Trial) Take(pidfd int) error {
	fd, err := unix.PidfdGetfd(pidfd, t.Pipe, 0)
	if err != nil {
		return fmt.Errorf("pidfd_getfd: %w", err)
	}
	defer unix.Close(fd)
	return t.Write(fd)
}

// readKey returns what is in the key.
func readKey(t *Trial) error {
	data := make([]byte, 100)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, t.Key, data, 0)
	return cmp.Or(err, fmt.Errorf("%q", data[:min(max(n, 0), len(data))]))
}

// readShared returns what is in the shared memory.
func readShared(t *Trial) error {
	data, _, err := attach(t.IPC, 0)
	return cmp.Or(err, fmt.Errorf("%.100q", data))
}

// attach returns shared memory with a key, and its number: shmget(2), shmat(2).
func attach(key, flags int) (memory []byte, id int, err error) {
	if id, err = unix.SysvShmGet(key, 4096, flags); err == nil {
		memory, err = unix.SysvShmAttach(id, 0, 0)
	}
	return memory, id, err
}
