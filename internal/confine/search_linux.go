//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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
