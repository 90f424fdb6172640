//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// addLost adds sockets whose files are not where they were bound: renamed, bound by a relative path or in
// another root folder, or with hard links. It looks where their processes are, and then in all folders of
// their file systems. If the command could reach a socket that was not found, addLost returns an error.
func (h *hiding) addLost(bound []boundSocket) error {
	lost := h.lost(bound)
	if len(lost) == 0 {
		return nil
	}
	h.addLikely(lost)
	if now, err := boundSockets(); err == nil {
		lost = stillBound(h.lost(bound), now)
	}
	if len(lost) == 0 {
		return nil
	}
	s := h.search(devicesOf(lost))
	for _, path := range s.sockets {
		h.add(path)
	}
	for _, dir := range s.closed {
		h.addFolder(dir)
		h.addClosed(dir)
	}
	now, err := boundSockets()
	if err != nil {
		return err
	}
	for _, l := range stillBound(h.lost(bound), now) {
		if err := h.addUnread(l, s); err != nil {
			return err
		}
	}
	return nil
}

// addUnread adds the folders in which the command could reach a socket that the search has not found: those
// that this user can use, but not list. If there are none, the socket was removed, or is out of reach.
func (h *hiding) addUnread(l boundSocket, s searched) error {
	if s.late {
		return l.mayBeReached(fmt.Sprintf("not all folders of its file system could be read within %v", h.limit),
			"The next start may be fast enough, since the system has these folders in memory now. If it is not, stop")
	}
	for _, f := range s.unread {
		switch {
		case f.device != l.file.device:
		case errors.Is(f.err, unix.EACCES) && !h.leadsToNeeded(f.path):
			h.hideFolder(f.path)
		case !outOfReach(l.name):
			return l.mayBeReached(f.err.Error(), "Let this user list the folder; or stop")
		}
	}
	return nil
}

// lost returns the sockets on mounted file systems with files that were not found, or not by all their names.
// A socket whose file was removed is among them: the kernel does not tell.
func (h *hiding) lost(bound []boundSocket) (all []boundSocket) {
	mounted := map[string]bool{}
	for _, m := range h.mounts {
		mounted[m.device] = true
	}
	found := map[kernelFile]int{}
	for _, f := range h.found {
		found[f.file]++
		if f.left > 0 && mounted[f.file.device] {
			all = append(all, boundSocket{file: f.file, name: f.path})
		}
	}
	for _, s := range bound {
		if found[s.file]--; found[s.file] < 0 && mounted[s.file.device] {
			all = append(all, s)
		}
	}
	return all
}

// stillBound leaves out sockets that a process has closed since they were listed. It keeps sockets that
// were found by another hard link.
func stillBound(sockets, now []boundSocket) []boundSocket {
	files := map[kernelFile]bool{}
	for _, s := range now {
		files[s.file] = true
	}
	return slices.DeleteFunc(sockets, func(s boundSocket) bool { return s.inode != 0 && !files[s.file] })
}

// addLikely adds sockets in the folders to which they were bound, as processes name them.
func (h *hiding) addLikely(lost []boundSocket) {
	of := holders(lost)
	for _, s := range lost {
		process, path := of[s.inode], s.name
		switch {
		case !filepath.IsAbs(path):
			path = filepath.Join(process.dir, path)
		case process.root != "":
			path = filepath.Join(process.root, path)
		}
		if filepath.IsAbs(path) {
			h.add(path)
			h.addIn(filepath.Dir(path))
		}
	}
}

func devicesOf(sockets []boundSocket) map[string]bool {
	devices := map[string]bool{}
	for _, s := range sockets {
		devices[s.file.device] = true
	}
	return devices
}

// mayBeReached returns the error for a socket whose file was not found.
func (s boundSocket) mayBeReached(why, remedy string) error {
	return &StepError{
		Step: "find the file of " + s.describe() + ", which the command must not reach", Err: errors.New(why),
		Remedy: remedy + " the process, or start it again with an absolute path for the socket. If the command may use the socket, name it with --reach unix:PATH.",
	}
}

// outOfReach reports whether this user may not look where a socket was bound. The socket is there, most likely.
func outOfReach(name string) bool {
	var s unix.Stat_t
	return filepath.IsAbs(name) && unix.Stat(name, &s) == unix.EACCES
}

// leadsToNeeded reports whether a folder leads to the current folder, to the user's own, to one of PATH, or to a
// socket that the command may use.
func (h *hiding) leadsToNeeded(dir string) bool {
	return slices.ContainsFunc(h.needed, func(path string) bool {
		real, err := filepath.EvalSymlinks(path)
		return below(path, dir) || err == nil && below(real, dir)
	})
}

// searchLimit bounds the search for lost sockets. A system reads some 50,000 folders a second that are in
// memory, and often less than 5,000 from a disk.
const searchLimit = 30 * time.Second

// search lists all sockets in the mounts of these file systems, as this process sees them. It ends after the
// limit.
func (h *hiding) search(devices map[string]bool) searched {
	w := &walker{points: map[string]bool{}, until: time.Now().Add(h.limit), others: make(chan struct{}, 7)}
	from := map[string]bool{}
	for _, m := range h.mounts {
		w.points[m.point] = true
		if devices[m.device] || !slices.Contains(networkFileSystems, m.kind) {
			from[m.point] = true
		}
	}
	ended := make(chan struct{})
	go func() { // which may wait for the server of a network file system
		defer close(ended)
		for point := range from {
			if m := h.mountAt(point); devices[m.device] {
				w.add(func(s *searched) { s.sockets = append(s.sockets, point) }) // if it is one
				w.walk(point, m.device)
			}
		}
		w.all.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(h.limit + time.Second):
		w.add(func(s *searched) { s.late = true })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return searched{slices.Clone(w.sockets), slices.Clone(w.closed), slices.Clone(w.unread), w.late}
}

// searched is what a search has found.
type searched struct {
	sockets []string
	closed  []string       // folders that this user may not read, and not search either
	unread  []unreadFolder // others that could not be listed
	late    bool           // the limit was reached
}

// An unreadFolder is a folder in which there may be files that this user can reach.
type unreadFolder struct {
	path, device string
	err          error
}

// A walker reads folders at the same time.
type walker struct {
	points map[string]bool // of mounts: each is searched for itself
	until  time.Time
	others chan struct{} // a place for each further goroutine
	all    sync.WaitGroup

	mu sync.Mutex // for what follows
	searched
}

func (w *walker) add(f func(*searched)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.searched)
}

// walk reads a folder and those in it, without following symbolic links.
func (w *walker) walk(dir, device string) {
	if time.Now().After(w.until) {
		w.add(func(s *searched) { s.late = true })
		return
	}
	folders, sockets, err := list(dir)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
	case errors.Is(err, unix.EACCES) && unix.Access(dir, unix.X_OK) != nil:
		w.add(func(s *searched) { s.closed = append(s.closed, dir) })
	default:
		w.add(func(s *searched) { s.unread = append(s.unread, unreadFolder{dir, device, err}) })
	}
	if len(sockets) > 0 {
		w.add(func(s *searched) { s.sockets = append(s.sockets, sockets...) })
	}
	for _, folder := range folders {
		if w.points[folder] {
			continue
		}
		select {
		case w.others <- struct{}{}:
			w.all.Go(func() {
				defer func() { <-w.others }()
				w.walk(folder, device)
			})
		default:
			w.walk(folder, device)
		}
	}
}

// list returns the folders and the sockets in a folder.
func list(dir string) (folders, sockets []string, err error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0) // a mount may be of a file
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			switch {
			case e.IsDir():
				folders = append(folders, filepath.Join(dir, e.Name()))
			case e.Type()&os.ModeSocket != 0:
				sockets = append(sockets, filepath.Join(dir, e.Name()))
			}
		}
		if err == io.EOF {
			return folders, sockets, nil
		}
		if err != nil {
			return folders, sockets, err
		}
	}
}
