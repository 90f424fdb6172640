//go:build linux && (amd64 || arm64)

package escapes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unixSockets has Unix sockets by all their names.
var unixSockets = []Attempt{
	{Name: "unix-dgram-unconnected", Tries: "send to a Unix datagram socket without connecting", try: unixSendTo("dgram")},
	{Name: "unix-dgram-pair", Tries: "send to a Unix datagram socket from one of a pair", try: unixPair},
	{Name: "unix-seqpacket", Tries: "connect to a Unix seqpacket socket", try: unixSocket("unixpacket", "seqpacket")},
	{Name: "abstract-seqpacket", Tries: "connect to an abstract seqpacket socket", try: unixSocket("unixpacket", "abstract seqpacket")},
	{Name: "unix-symlink", Tries: "connect to a Unix socket by a symbolic link", try: unixLink(os.Symlink)},
	{Name: "unix-hard-link", Tries: "connect to a Unix socket by a new hard link", try: unixLink(os.Link)},
	{Name: "unix-old-hard-link", Tries: "connect to a Unix socket by a hard link that was there before", try: unixSocket("unix", "linked")},
	{Name: "unix-relative", Tries: "connect to a Unix socket that was bound by a relative path", try: unixSocket("unix", "relative")},
	{Name: "unix-renamed-folder", Tries: "rename the folder of a Unix socket and connect", try: unixRenamedFolder},
	{Name: "unix-closed-folder", Tries: "open the folder of a Unix socket without permissions and connect", try: unixClosedFolder},
	{Name: "unix-swapped", Tries: "move a Unix socket away from its name and connect", try: unixSwapped},
	{Name: "unix-chdir", Tries: "connect to a Unix socket relative to its folder", try: unixChdir},
	{Name: "unix-opened", Tries: "connect to a Unix socket through a descriptor of its file", try: unixOpened},
	{Name: "unix-proc-root", Tries: "connect to a Unix socket through /proc/PID/root", try: unixProc("root")},
	{Name: "unix-proc-cwd", Tries: "connect to a Unix socket through /proc/PID/cwd", try: unixProc("cwd")},
	{Name: "unix-double-slash", Tries: "connect to a Unix socket by a path with dots and slashes", try: func(t *trial) error {
		return t.Send("unix", t.Dir+"//./../"+filepath.Base(t.Dir)+"/"+filepath.Base(t.At["stream"]), t.Token())
	}},
}

// desktopSockets has the sockets by which programs are usually asked to do something for another.
var desktopSockets = []Attempt{
	{Name: "docker-socket", Tries: "ask a Docker daemon for a container", try: asking("docker", "POST /v1.41/containers/create HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{\"Image\": \"TOKEN\"}")},
	{Name: "dbus-session", Tries: "call a method on the session bus", try: asking("dbus", "\x00AUTH EXTERNAL 30\r\nTOKEN\r\n")},
	{Name: "dbus-abstract", Tries: "call a method on an abstract bus", try: asking("abstract dbus", "\x00AUTH EXTERNAL 30\r\nTOKEN\r\n")},
	{Name: "systemd-run", Tries: "ask a service manager to run a command", try: asking("systemd", "\x00AUTH EXTERNAL 30\r\nBEGIN\r\nStartTransientUnit TOKEN\r\n")},
	{Name: "x11-socket", Tries: "type into the windows of an X server", Needs: []string{"x11"}, try: asking("x11", "l\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00TOKEN")},
	{Name: "x11-abstract", Tries: "connect to an X server's abstract socket", try: asking("abstract x11", "l\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00TOKEN")},
	{Name: "wayland-socket", Tries: "connect to a Wayland compositor", try: asking("wayland", "\x01\x00\x00\x00\x01\x00\x0c\x00TOKEN")},
	{Name: "ssh-agent", Tries: "sign with the keys of an ssh-agent", try: asking("ssh-agent", "\x00\x00\x00\x30\x0dTOKEN")},
	{Name: "gpg-agent", Tries: "sign with the keys of a gpg-agent", try: asking("gpg-agent", "SIGKEY TOKEN\nPKSIGN\n")},
	{Name: "tmux-socket", Tries: "type into a window of tmux", try: asking("tmux", "send-keys TOKEN")},
	{Name: "syslog-socket", Tries: "write to the system's log, which may be sent on", try: func(t *trial) error { return t.Send("unixgram", t.At["syslog"], "<13>"+t.Token()) }},
}

func unixSocket(network, name string) func(*trial) error {
	return func(t *trial) error { return t.Send(network, t.At[name], t.Token()) }
}

func asking(name, text string) func(*trial) error {
	return func(t *trial) error {
		return t.Send("unix", t.At[name], strings.ReplaceAll(text, "TOKEN", t.Token()))
	}
}

func unixSendTo(name string) func(*trial) error {
	return func(t *trial) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendmsg(fd, []byte(t.Token()), nil, &unix.SockaddrUnix{Name: t.At[name]}, 0)
	}
}

func unixPair(t *trial) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	return unix.Sendto(pair[0], []byte(t.Token()), 0, &unix.SockaddrUnix{Name: t.At["dgram"]})
}

func unixLink(link func(old, new string) error) func(*trial) error {
	return func(t *trial) error {
		name := t.At["stream"] + "." + t.Name
		if err := link(t.At["stream"], name); err != nil {
			return err
		}
		defer os.Remove(name)
		return t.Send("unix", name, t.Token())
	}
}

func unixRenamedFolder(t *trial) error {
	folder := filepath.Dir(t.At["folder"])
	if err := os.Rename(folder, folder+"2"); err != nil {
		return err
	}
	defer os.Rename(folder+"2", folder)
	return t.Send("unix", filepath.Join(folder+"2", filepath.Base(t.At["folder"])), t.Token())
}

func unixClosedFolder(t *trial) error {
	folder := filepath.Dir(t.At["closed"])
	if err := os.Chmod(folder, 0o700); err != nil {
		return err
	}
	defer os.Chmod(folder, 0)
	return t.Send("unix", t.At["closed"], t.Token())
}

func unixSwapped(t *trial) error {
	name := t.At["swapped"]
	if err := os.Rename(name, name+"2"); err != nil {
		return err
	}
	defer os.Rename(name+"2", name)
	return t.Send("unix", name+"2", t.Token())
}

func unixChdir(t *trial) error {
	if err := os.Chdir(filepath.Dir(t.At["stream"])); err != nil {
		return err
	}
	return t.Send("unix", filepath.Base(t.At["stream"]), t.Token())
}

func unixOpened(t *trial) error {
	fd, err := unix.Open(t.At["stream"], unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return t.Send("unix", fmt.Sprintf("/proc/self/fd/%d", fd), t.Token())
}

// candidates returns the processes to try: the one that stands in for the gate and, inside, all that
// can be seen.
func (t *trial) candidates() []int {
	pids := []int{t.StandIn.PID}
	if !t.Confined {
		return pids
	}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// each tries all candidates. It returns nil if one of them worked.
func (t *trial) each(try func(pid int) error) error {
	var errs []error
	for _, pid := range t.candidates() {
		err := try(pid)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("process %d: %w", pid, err))
	}
	if len(errs) > 3 {
		errs = append(errs[:3], fmt.Errorf("and %d others", len(errs)-3))
	}
	return errors.Join(errs...)
}

func unixProc(link string) func(*trial) error {
	return func(t *trial) error {
		return t.each(func(pid int) error {
			path := fmt.Sprintf("/proc/%d/%s%s", pid, link, t.At["short"])
			if link == "cwd" { // of the process outside
				path = fmt.Sprintf("/proc/%d/cwd/%s", pid, filepath.Base(t.At["short"]))
			}
			return t.Send("unix", path, t.Token())
		})
	}
}
