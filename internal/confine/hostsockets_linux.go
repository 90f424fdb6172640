//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the search for sockets.
const (
	maxHidden    = 4096
	maxFolders   = 400   // of one walk: some milliseconds
	maxEntries   = 4_000 // in all of them
	maxDepth     = 5
	maxProcesses = 20_000
)

// hostSockets returns the paths of Unix sockets that processes outside have bound, without those in
// reach, and the paths of the user's folders that it may not search. The kernel lists the sockets in this
// network namespace. Sockets of other namespaces, such as a container's, are searched for in the usual
// folders, in mounts and in the current folder.
func hostSockets(reach []Reach) ([]string, error) {
	bound, err := boundSockets()
	if err != nil {
		return nil, &StepError{Step: "list the Unix sockets to hide, by sock_diag(7)", Err: err, Remedy: "The kernel must have the module unix_diag: modprobe unix_diag, as root; and no seccomp filter may forbid netlink sockets."}
	}
	mounts, err := readMounts()
	if err != nil {
		return nil, stepError("read the list of mounts", err)
	}
	h := newHiding(mounts)
	for _, r := range reach {
		if id, _, is := socketAt(r.Path); r.Path != "" && is {
			h.except[id] = true
			h.needed = append(h.needed, r.Path)
			h.add(r.Path)
		}
	}
	for _, s := range bound {
		if filepath.IsAbs(s.name) {
			h.add(s.name)
		}
	}
	for _, path := range socketVariables() {
		h.add(path)
	}
	h.addMounted()
	for _, dir := range socketFolders() {
		h.walk(dir)
	}
	if dir, err := os.Getwd(); err == nil && dir != "/" {
		h.walk(dir)
	}
	if err := h.addLost(bound); err != nil {
		return nil, err
	}
	if len(h.paths) > maxHidden {
		return nil, stepError("hide the Unix sockets", fmt.Errorf("there are more than %d", maxHidden))
	}
	return h.paths, nil
}

// A fileID identifies a file.
type fileID struct{ dev, inode uint64 }

// socketAt returns the socket that a path leads to, and how many hard links it has.
func socketAt(path string) (id fileID, links uint64, is bool) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return fileID{}, 0, false
	}
	return fileID{uint64(s.Dev), s.Ino}, uint64(s.Nlink), true
}

// hiding collects the paths of sockets.
type hiding struct {
	mounts []mount
	except map[fileID]bool
	seen   map[string]bool
	paths  []string // without symbolic links
	found  map[fileID]*foundSocket
	limit  time.Duration // of the search for lost sockets
	needed []string      // paths that must not be hidden with a folder
}

// A foundSocket is the file of a socket.
type foundSocket struct {
	file kernelFile
	path string
	left uint64 // hard links that were not found yet
}

func newHiding(mounts []mount) *hiding {
	needed := append(filepath.SplitList(os.Getenv("PATH")), os.Getenv("HOME"))
	if current, err := os.Getwd(); err == nil {
		needed = append(needed, current)
	}
	return &hiding{needed: needed, mounts: mounts, except: map[fileID]bool{}, seen: map[string]bool{}, found: map[fileID]*foundSocket{}, limit: searchLimit}
}

// add adds a path if it leads to a socket, with the other paths to it.
func (h *hiding) add(path string) {
	id, links, is := socketAt(path)
	if !is {
		h.addClosed(path)
		return
	}
	if len(h.paths) > maxHidden || leftover(path) {
		return
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || h.seen[real] {
		return
	}
	file := kernelFile{h.mountAt(real).device, uint32(id.inode)}
	if h.except[id] {
		h.found[id] = &foundSocket{file: file}
		return
	}
	f := h.found[id]
	if f == nil {
		f = &foundSocket{file, real, links}
		h.found[id] = f
	}
	f.left -= min(1, f.left)
	h.seen[real] = true
	h.paths = append(h.paths, real)
	for _, alias := range aliases(h.mounts, real) {
		if other, _, is := socketAt(alias); is && other == id && !h.seen[alias] {
			h.seen[alias] = true
			h.paths = append(h.paths, alias)
		}
	}
}

// mountAt returns the mount in which a path is.
func (h *hiding) mountAt(path string) mount {
	id, err := mountID(path)
	if err != nil {
		return mount{}
	}
	for _, m := range h.mounts {
		if m.id == id {
			return m
		}
	}
	return mount{}
}

// addClosed adds the folder that keeps this process from looking at a path.
func (h *hiding) addClosed(path string) {
	var s unix.Stat_t
	if unix.Stat(path, &s) != unix.EACCES {
		return
	}
	_, err := filepath.EvalSymlinks(path)
	if at, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(at.Err, unix.EACCES) {
		h.addFolder(filepath.Dir(at.Path)) // this process may search all folders above it
	}
}

// addFolder adds a folder that this process may not read or not search, if it is the user's own: the command
// could open it with chmod(2), and connect to a socket in it.
func (h *hiding) addFolder(dir string) {
	var s unix.Stat_t
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || unix.Stat(real, &s) != nil || int(s.Uid) != os.Geteuid() {
		return
	}
	h.hideFolder(real)
}

// hideFolder adds a folder, which has no symbolic links in its path, with the other paths to it.
func (h *hiding) hideFolder(dir string) {
	for _, path := range append(aliases(h.mounts, dir), dir) {
		if !h.seen[path] && len(h.paths) <= maxHidden {
			h.seen[path] = true
			h.paths = append(h.paths, path)
		}
	}
}

// walk adds the sockets in a folder and the folders in it, the upper levels first. It follows no symbolic links.
// Each walk has bounds of its own: a full folder must not hide the sockets in another.
func (h *hiding) walk(dir string) {
	dirs, folders, entries := []string{dir}, 0, 0
	for range maxDepth {
		var next []string
		for _, dir := range dirs {
			if folders++; folders > maxFolders {
				return
			}
			for _, e := range h.readDir(dir, maxEntries-entries) {
				entries++
				switch {
				case e.Type()&os.ModeSocket != 0:
					h.add(filepath.Join(dir, e.Name()))
				case e.IsDir():
					next = append(next, filepath.Join(dir, e.Name()))
				}
			}
		}
		dirs = next
	}
}

// readDir returns up to most entries of a folder.
func (h *hiding) readDir(dir string, most int) []os.DirEntry {
	if most <= 0 {
		return nil
	}
	f, err := os.Open(dir)
	if errors.Is(err, unix.EACCES) {
		h.addFolder(dir)
	}
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(most)
	return entries
}

// socketFolders are where sockets usually are.
func socketFolders() []string {
	var dirs []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, dir) // before /run, in which it usually is
	}
	dirs = append(dirs, "/run", "/var/run", "/dev/shm")
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		for _, name := range []string{".gnupg", ".ssh", ".docker", ".colima", ".lima", ".local/share/containers", ".podman", ".1password", ".bitwarden-ssh-agent.sock"} {
			dirs = append(dirs, filepath.Join(home, name))
		}
	}
	return compact(append(dirs, "/tmp", os.TempDir()))
}

// compact follows symbolic links, and leaves out folders that are the same as others or in them.
func compact(dirs []string) (all []string) {
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || slices.ContainsFunc(all, func(have string) bool { return below(real, have) }) {
			continue
		}
		all = append(all, real)
	}
	return all
}

// socketVariables returns the sockets that environment variables name.
func socketVariables() (paths []string) {
	for _, name := range []string{"SSH_AUTH_SOCK", "DOCKER_HOST", "CONTAINER_HOST", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "PULSE_SERVER", "WAYLAND_DISPLAY", "NOTIFY_SOCKET"} {
		value := os.Getenv(name)
		value = strings.TrimPrefix(strings.TrimPrefix(value, "unix:path="), "unix:")
		value, _, _ = strings.Cut(value, ",")
		value = strings.TrimPrefix(value, "//")
		if filepath.IsAbs(value) {
			paths = append(paths, value)
		}
	}
	return paths
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
