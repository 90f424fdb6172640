//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxHidden bounds the sockets that are hidden.
const maxHidden = 4096

// hostSockets returns the paths of Unix sockets of processes outside, without those in reach: sockets that the kernel
// lists under an absolute path, and those in the usual folders. These have sockets of other network namespaces too, such
// as a container's.
func hostSockets(reach []Reach) (paths []string, err error) {
	list, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, stepError("list the Unix sockets to hide", err)
	}
	all := boundPaths(string(list))
	for _, dir := range []string{"/run", os.Getenv("XDG_RUNTIME_DIR"), "/tmp/.X11-unix"} {
		all = append(all, socketsIn(dir)...)
	}
	permitted := func(socket os.FileInfo) bool {
		return slices.ContainsFunc(reach, func(r Reach) bool {
			named, err := os.Stat(r.Path)
			return err == nil && os.SameFile(named, socket)
		})
	}
	for _, path := range all {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || slices.Contains(paths, real) {
			continue // it was removed, or is out of this user's reach
		}
		if info, err := os.Stat(real); err == nil && info.Mode()&os.ModeSocket != 0 && !permitted(info) && !leftover(real) {
			paths = append(paths, real)
		}
	}
	if len(paths) > maxHidden {
		return nil, stepError("hide the Unix sockets", fmt.Errorf("there are more than %d", maxHidden))
	}
	return paths, nil
}

// boundPaths returns the absolute paths in /proc/net/unix, proc_net(5). The path is the last column.
func boundPaths(list string) (paths []string) {
	for line := range strings.Lines(list) {
		if i := strings.Index(line, " /"); i >= 0 {
			paths = append(paths, strings.TrimSuffix(line[i+1:], "\n"))
		}
	}
	return paths
}

// socketsIn returns the sockets in a folder and in those below it on the same file system.
func socketsIn(dir string) (paths []string) {
	device := func(path string) uint64 {
		var s unix.Stat_t
		_ = unix.Lstat(path, &s)
		return uint64(s.Dev)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	own := device(real)
	_ = filepath.WalkDir(real, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir() && device(path) != own:
			return fs.SkipDir
		case e.Type()&os.ModeSocket != 0:
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

// leftover reports whether no process has the socket of a file any more. The command's own servers may
// then remove the file and make another. It connects with a socket of the wrong type, which the other
// side does not notice: connect(2), EPROTOTYPE.
func leftover(path string) bool {
	conn, err := net.Dial("unixgram", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}
