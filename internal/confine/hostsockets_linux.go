//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of the search for sockets.
const (
	maxHidden    = 4096
	maxFolders   = 400   // some milliseconds
	maxEntries   = 4_000 // in all of them
	maxDepth     = 5
	maxProcesses = 20_000
)

// hostSockets returns the paths of Unix sockets that processes outside have bound, without those in
// reach, and the paths of the user's folders that it may not search. A socket in this network namespace
// is in /proc/net/unix. Sockets of other namespaces, such as a container's, are searched for in the usual
// folders, in mounts and in the current folder.
func hostSockets(reach []Reach) ([]string, error) {
	list, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	mounts, err := readMounts()
	if err != nil {
		return nil, err
	}
	h := &hiding{mounts: mounts, except: map[fileID]bool{}, seen: map[string]bool{}, names: map[fileID]uint64{}}
	for _, r := range reach {
		if id, _, is := socketAt(r.Path); r.Path != "" && is {
			h.except[id] = true
		}
	}
	var relative []boundSocket
	bound := parseUnixSockets(string(list))
	for _, s := range bound {
		if filepath.IsAbs(s.path) {
			h.add(s.path)
		} else {
			relative = append(relative, s)
		}
	}
	for _, path := range absolute(relative) {
		h.add(path)
	}
	for _, path := range socketVariables() {
		h.add(path)
	}
	h.addMounted()
	h.walkEach(socketFolders())
	if dir, err := os.Getwd(); err == nil && dir != "/" {
		h.walkEach([]string{dir})
	}
	h.addLost(bound)
	if len(h.paths) > maxHidden {
		return nil, fmt.Errorf("more than %d Unix sockets would have to be hidden", maxHidden)
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
	paths  []string          // without symbolic links
	names  map[fileID]uint64 // hard links of the sockets that were not found yet
}

// add adds a path if it leads to a socket, with the other paths to it.
func (h *hiding) add(path string) {
	id, links, is := socketAt(path)
	if !is {
		h.addClosed(path)
		return
	}
	if h.except[id] || len(h.paths) > maxHidden || leftover(path) {
		return
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || h.seen[real] {
		return
	}
	h.seen[real] = true
	h.paths = append(h.paths, real)
	if _, known := h.names[id]; !known {
		h.names[id] = links
	}
	h.names[id] -= min(1, h.names[id])
	for _, alias := range aliases(h.mounts, real) {
		if other, _, is := socketAt(alias); is && other == id && !h.seen[alias] {
			h.seen[alias] = true
			h.paths = append(h.paths, alias)
		}
	}
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
	if err != nil || unix.Stat(real, &s) != nil || int(s.Uid) != os.Geteuid() || h.seen[real] || len(h.paths) > maxHidden {
		return
	}
	for _, path := range append(aliases(h.mounts, real), real) {
		h.seen[path] = true
		h.paths = append(h.paths, path)
	}
}

// walkEach walks folders, each within bounds of its own: a full one must not hide the sockets in another.
func (h *hiding) walkEach(dirs []string) {
	for _, dir := range dirs {
		h.walk([]string{dir}, &searchBounds{maxFolders, maxEntries})
	}
}

// walk adds the sockets in folders and the folders in them, the upper levels first. It follows no symbolic
// links.
func (h *hiding) walk(dirs []string, left *searchBounds) {
	for range maxDepth {
		var next []string
		for _, dir := range dirs {
			if left.folders--; left.folders < 0 {
				return
			}
			entries := h.readDir(dir, left.entries)
			left.entries -= len(entries)
			for _, e := range entries {
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

// searchBounds are how many folders and entries may still be read.
type searchBounds struct{ folders, entries int }

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

// A boundSocket is one that a process has bound to a path.
type boundSocket struct{ path, inode string } // the inode is that of the socket, not of its file

// parseUnixSockets reads /proc/net/unix. A path may have newlines: a line that does not begin as an entry
// does continues the path of the entry before.
func parseUnixSockets(list string) (all []boundSocket) {
	inEntry := false
	for line := range strings.Lines(list) {
		line = strings.TrimSuffix(line, "\n")
		if !entryBegins(line) {
			if n := len(all); n > 0 && inEntry {
				all[n-1].path += "\n" + line
			}
			continue
		}
		inode, path, has := inodeAndPath(line)
		inEntry = has && !strings.HasPrefix(path, "@") // a name that begins with @ may be an abstract one
		if inEntry {
			all = append(all, boundSocket{path, inode})
		}
	}
	return all
}

// entryBegins reports whether a line begins with 16 hexadecimal digits, or 8, and a colon.
func entryBegins(line string) bool {
	address, _, ok := strings.Cut(line, ": ")
	return ok && (len(address) == 16 || len(address) == 8) && strings.Trim(address, "0123456789abcdef") == ""
}

// inodeAndPath returns the last fields of "Num: RefCount Protocol Flags Type St Inode Path".
func inodeAndPath(line string) (inode, path string, ok bool) {
	rest := line
	for range 7 {
		rest = strings.TrimLeft(rest, " ")
		inode, rest, ok = strings.Cut(rest, " ")
		if !ok {
			return "", "", false
		}
	}
	return inode, rest, rest != ""
}

// absolute returns paths of sockets that were bound by relative ones: below the current folders of
// the processes that have them open.
func absolute(sockets []boundSocket) (paths []string) {
	if len(sockets) == 0 {
		return nil
	}
	byLink := map[string]string{}
	for _, s := range sockets {
		byLink["socket:["+s.inode+"]"] = s.path
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes[:min(len(processes), maxProcesses)] {
		dir, err := os.Readlink(process + "/cwd")
		if err != nil {
			continue // another user's process
		}
		f, err := os.Open(process + "/fd")
		if err != nil {
			continue
		}
		fds, _ := f.Readdirnames(-1)
		f.Close()
		for _, fd := range fds {
			if link, err := os.Readlink(process + "/fd/" + fd); err == nil && byLink[link] != "" {
				paths = append(paths, filepath.Join(dir, byLink[link]))
			}
		}
	}
	return paths
}
