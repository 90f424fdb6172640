//go:build linux && (amd64 || arm64)

package confine

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// addLost adds sockets that have other names than those to which they were bound: sockets that were
// renamed, such as by a server that puts a new one in the place of the old, or have hard links. The
// folders of all bound paths are read for them. If a socket is still missing, others are searched too.
func (h *hiding) addLost(bound []boundSocket) {
	for _, dir := range foldersOf(bound) {
		h.addIn(dir)
	}
	files, err := boundFiles()
	if err == nil && !h.lost(files) {
		return
	}
	for _, dir := range lostFolders() {
		h.walkEach([]string{dir})
		if err == nil && !h.lost(files) {
			return
		}
	}
}

// addMounted adds sockets of other network namespaces that are mounted here: a single one, or one in
// a folder that is part of another file system, such as a container's volume.
func (h *hiding) addMounted() {
	for _, m := range h.mounts {
		if m.root == "/" || slices.Contains(networkFileSystems, m.kind) {
			continue
		}
		h.add(m.point)
		h.addIn(m.point)
	}
}

// networkFileSystems may make stat wait for a server.
var networkFileSystems = []string{"nfs", "nfs4", "cifs", "smb3", "afs", "ceph", "9p", "autofs", "fuse.sshfs"}

// addIn adds the sockets in a folder.
func (h *hiding) addIn(dir string) {
	for _, e := range h.readDir(dir, maxEntries) {
		if e.Type()&os.ModeSocket != 0 {
			h.add(filepath.Join(dir, e.Name()))
		}
	}
}

// leftover reports whether no process has the socket of a file any more. The command's own servers may
// then remove the file and make another. It connects with a socket of the wrong type, which the other
// side does not notice: connect(2), EPROTOTYPE.
func leftover(path string) bool {
	file, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(file)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// Through the descriptor, since a path may be longer than an address: unix(7).
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(file)})
	return err == unix.ECONNREFUSED
}

// lost reports whether one of these files has names that were not found. It also returns true for a
// socket with a removed file, which the kernel does not mark.
func (h *hiding) lost(files []fileID) bool {
	for _, id := range files {
		if _, found := h.names[id]; !found && !h.except[id] {
			return true
		}
	}
	for _, left := range h.names {
		if left > 0 {
			return true
		}
	}
	return false
}

func foldersOf(bound []boundSocket) (dirs []string) {
	for _, s := range bound {
		if dir := filepath.Dir(s.path); filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// lostFolders are where a socket may be that is not in the folder to which it was bound, the likely
// ones first.
func lostFolders() []string {
	dirs := []string{"/var/tmp"}
	if dir, err := os.Getwd(); err == nil && dir != "/" {
		dirs = append(dirs, dir)
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) && home != "/" {
		dirs = append(dirs, home)
	}
	return compact(append(dirs, "/srv", "/opt", "/mnt", "/home", "/root", "/var", "/usr/local", "/etc"))
}

// boundFiles returns the files of all Unix sockets of this network namespace that are bound to one
// (sock_diag(7), UNIX_DIAG_VFS).
func boundFiles() (all []fileID, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	const (
		showVFS      = 2
		attributeVFS = 1
		messageSize  = 16 // struct unix_diag_msg
		allStates    = ^uint32(0)
	)
	request := binary.NativeEndian.AppendUint32(nil, unix.NLMSG_HDRLEN+24)
	request = binary.NativeEndian.AppendUint16(request, unix.SOCK_DIAG_BY_FAMILY)
	request = binary.NativeEndian.AppendUint16(request, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request = append(request, make([]byte, 8)...)
	request = append(request, unix.AF_UNIX, 0, 0, 0)
	for _, v := range []uint32{allStates, 0, showVFS, 0, 0} {
		request = binary.NativeEndian.AppendUint32(request, v)
	}
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	buffer := make([]byte, 65536)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return nil, err
		}
		for data := buffer[:n]; len(data) >= unix.NLMSG_HDRLEN; {
			size, kind := int(binary.NativeEndian.Uint32(data)), binary.NativeEndian.Uint16(data[4:])
			switch {
			case kind == unix.NLMSG_DONE:
				return all, nil
			case kind == unix.NLMSG_ERROR || size < unix.NLMSG_HDRLEN || size > len(data):
				return nil, unix.EPROTO
			}
			if size >= unix.NLMSG_HDRLEN+messageSize {
				for a := data[unix.NLMSG_HDRLEN+messageSize : size]; len(a) >= 4; {
					length := int(binary.NativeEndian.Uint16(a))
					if length < 4 || length > len(a) {
						break
					}
					if binary.NativeEndian.Uint16(a[2:]) == attributeVFS && length >= 12 {
						inode, dev := binary.NativeEndian.Uint32(a[4:]), binary.NativeEndian.Uint32(a[8:])
						// The kernel's own form of a device number, MKDEV of linux/kdev_t.h.
						all = append(all, fileID{unix.Mkdev(dev>>20, dev&0xfffff), uint64(inode)})
					}
					a = a[min((length+3)&^3, len(a)):]
				}
			}
			data = data[min((size+3)&^3, len(data)):]
		}
	}
}
