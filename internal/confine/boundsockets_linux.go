//go:build linux && (amd64 || arm64)

package confine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A boundSocket is a Unix socket of this network namespace that is bound to a file, and to which a process
// could connect, now or when its server listens.
type boundSocket struct {
	file  kernelFile
	name  string // as it was bound: perhaps relative, or in another root folder
	inode uint32 // of the socket, not of its file; 0: the socket is known by this name, and a hard link is missing
	user  int    // that has made the socket; -1: the kernel does not say
}

// A kernelFile is a file as the kernel's list of sockets names it: by the device of its file system, as in
// mountinfo, and the lower half of its inode number. Stat may give another device, as with Btrfs.
type kernelFile struct {
	device string
	inode  uint32
}

// Constants of linux/unix_diag.h.
const (
	unixDiagMessageSize                          = 16
	showName, showVFS, showUser                  = 1, 2, 0x40
	attributeName, attributeVFS, attributeUserID = 0, 1, 7
)

// A unixDiagRequest is the struct unix_diag_req.
type unixDiagRequest struct {
	Family, Protocol    uint8
	_                   uint16
	States, Inode, Show uint32
	Cookie              [2]uint32
}

// boundSockets returns the sockets that sock_diag(7) lists.
func boundSockets() (all []boundSocket, err error) {
	request := unixDiagRequest{Family: unix.AF_UNIX, States: ^uint32(0), Show: showName | showVFS | showUser}
	err = netlink(unix.NETLINK_SOCK_DIAG, unix.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP, encoded(request), func(message []byte) {
		if s, ok := parseBoundSocket(message); ok {
			all = append(all, s)
		}
	})
	return all, err
}

// parseBoundSocket reads a struct unix_diag_msg with its attributes. It returns false for a socket that is
// bound to no file, and for one end of a connection.
func parseBoundSocket(message []byte) (s boundSocket, ok bool) {
	if len(message) < unixDiagMessageSize {
		return s, false
	}
	kind, state := message[1], message[2]
	s.inode, s.user = binary.NativeEndian.Uint32(message[4:]), -1
	for a := message[unixDiagMessageSize:]; len(a) >= 4; {
		length := int(binary.NativeEndian.Uint16(a))
		if length < 4 || length > len(a) {
			break
		}
		value := a[4:length]
		switch attribute := binary.NativeEndian.Uint16(a[2:]); {
		case attribute == attributeName:
			s.name = string(bytes.TrimRight(value, "\x00"))
		case attribute == attributeUserID && len(value) >= 4:
			s.user = int(binary.NativeEndian.Uint32(value))
		case attribute == attributeVFS && len(value) >= 8:
			dev := binary.NativeEndian.Uint32(value[4:]) // MKDEV of linux/kdev_t.h
			s.file = kernelFile{fmt.Sprintf("%d:%d", dev>>20, dev&0xfffff), binary.NativeEndian.Uint32(value)}
		}
		a = a[min((length+3)&^3, len(a)):]
	}
	connected := state == tcpEstablished && kind != unix.SOCK_DGRAM // it has the file of the one that listens
	return s, s.file.device != "" && !connected
}

const tcpEstablished = 1

// A holder is a process that has a socket.
type holder struct {
	pid       string
	dir, root string // its current folder and its root folder; "": this process may not know
}

// holders returns a process for each of these sockets, by the socket's inode number, if this process may look
// at it.
func holders(sockets []boundSocket) map[uint32]holder {
	byLink := map[string]uint32{}
	for _, s := range sockets {
		byLink[fmt.Sprintf("socket:[%d]", s.inode)] = s.inode
	}
	found := map[uint32]holder{}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes[:min(len(processes), maxProcesses)] {
		f, err := os.Open(process + "/fd")
		if err != nil {
			continue // another user's process
		}
		fds, _ := f.Readdirnames(-1)
		f.Close()
		for _, fd := range fds {
			link, err := os.Readlink(process + "/fd/" + fd)
			if inode, is := byLink[link]; err == nil && is {
				dir, _ := os.Readlink(process + "/cwd")
				root, _ := os.Readlink(process + "/root")
				found[inode] = holder{filepath.Base(process), dir, root}
			}
		}
	}
	return found
}

// describe names a socket and its process.
func (s boundSocket) describe() string {
	text := fmt.Sprintf("the Unix socket %q", s.name)
	if s.inode == 0 {
		return "another hard link of " + text[len("the "):]
	}
	if h, known := holders([]boundSocket{s})[s.inode]; known {
		name, _ := os.ReadFile("/proc/" + h.pid + "/comm")
		return fmt.Sprintf("%s of process %s (%s)", text, h.pid, bytes.TrimSpace(name))
	}
	if s.user < 0 {
		return text + " of another user's process"
	}
	name := strconv.Itoa(s.user)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return text + " of a process of the user " + name
}
