package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"robotsgate/policy/snapshot"
)

// A Reader is a snapshot.Archive: it reads the files in a folder.
type Reader struct {
	dir   string
	warn  func(error)
	named sync.Map // files that warn was called for
}

// Read returns what reads the snapshots in a folder, also while gates use it. The error is fs.ErrNotExist if there are
// none. Warn is called for a file that can't be read, which is as if it were not there.
func Read(dataDir string, warn func(error)) (*Reader, error) {
	dir := filepath.Join(dataDir, snapshotsDir)
	if _, err := os.ReadDir(dir); err != nil {
		return nil, err
	}
	return &Reader{dir: dir, warn: warn}, nil
}

// files returns the names of the files in a folder that begin with a text. They are sorted.
func (x *Reader) files(folder int, begins string) (names []string, err error) {
	entries, err := os.ReadDir(x.path(folder, ""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), begins) {
			if _, ok := parse(folder, e.Name()); ok {
				names = append(names, e.Name())
			}
		}
	}
	return names, err
}

// each calls current for the files of sets with names that begin with a text, and then past for those of superseded
// answers. It looks for the second ones later, or else it would miss an answer that is superseded meanwhile.
func (x *Reader) each(folder int, begins string, current, past func(path string)) error {
	for _, f := range []struct {
		past bool
		call func(string)
	}{{false, current}, {true, past}} {
		names, err := x.files(folder, begins)
		if err != nil {
			return err
		}
		for _, file := range names {
			if n, _ := parse(folder, file); (n.began != "") == f.past {
				f.call(x.path(folder, file))
			}
		}
	}
	return nil
}

// Body returns a file of an origin by its SHA-256. The error is fs.ErrNotExist if it is not kept, and
// snapshot.ErrChanged if it does not match its name.
func (x *Reader) Body(origin, digest string) (text string, err error) {
	err = fmt.Errorf("%q is no SHA-256 of a file that is kept: %w", digest, fs.ErrNotExist)
	found := false
	look := func(path string, line any, of func() *snapshot.Snapshot) {
		if found {
			return
		}
		body, failed := read(path, line)
		if failed != nil {
			x.unreadable(path, failed)
			return
		}
		if s := of(); s == nil || s.SHA256 != digest || digest == "" {
			return
		}
		if found = snapshot.Digest(body) == digest; found {
			text, err = string(body), nil
			return
		}
		err = snapshot.ErrChanged // another file may have it
	}
	folder, begins := place(origin)
	failed := x.each(folder, begins+"_", func(path string) {
		var set setLine
		look(path, &set, func() *snapshot.Snapshot { return set.Good })
	}, func(path string) {
		if !strings.HasSuffix(path, "_"+what(&snapshot.Snapshot{SHA256: digest})) {
			return
		}
		var a answerLine
		look(path, &a, func() *snapshot.Snapshot { return a.Snapshot })
	})
	if failed != nil {
		return "", failed
	}
	return text, err
}

// History returns the answers of an origin to requests for its robots.txt, the oldest first.
func (x *Reader) History(origin string) ([]snapshot.Answer, error) {
	return x.history(snapshot.Scope{Origin: origin})
}

// TDMRepHistory returns those to requests for its tdmrep.json.
func (x *Reader) TDMRepHistory(origin string) ([]snapshot.Answer, error) {
	return x.history(snapshot.Scope{Origin: origin, TDMRep: true})
}

// history returns the answers about a file, whichever clients they are for.
func (x *Reader) history(file snapshot.Scope) (all []snapshot.Answer, err error) {
	add := func(key string, a snapshot.Answer) {
		if scope := snapshot.ParseKey(key); scope.Origin == file.Origin && scope.TDMRep == file.TDMRep && a.Snapshot != nil {
			a.Asker = scope.Asker
			all = append(all, a)
		}
	}
	inForce := map[string]bool{} // by the names that they will have
	n := nameOf(file.Key())
	begins := strings.TrimSuffix(n.current(), n.asker)
	err = x.each(n.folder, begins, func(path string) {
		var set setLine
		body, err := read(path, &set)
		if err != nil {
			x.unreadable(path, err)
			return
		}
		set.Body = body
		for _, a := range set.InForce() {
			inForce[nameOf(set.Key).past(a)] = true
			add(set.Key, a)
		}
	}, func(path string) {
		if inForce[filepath.Base(path)] {
			return // a gate was killed before it replaced the set
		}
		var a answerLine
		body, err := read(path, &a)
		if err != nil {
			x.unreadable(path, err)
			return
		}
		a.Bytes = int64(len(body))
		add(a.Key, a.Answer)
	})
	slices.SortStableFunc(all, func(a, b snapshot.Answer) int { return a.From.Compare(b.From) })
	return all, err
}

// HostOrigins returns the origins of a host, on all ports, of which there are answers. They are sorted.
func (x *Reader) HostOrigins(host string) (origins []string, err error) {
	folder, begins := hostPlace(host)
	files, err := x.files(folder, begins)
	for _, file := range files {
		origins = append(origins, originOf(host, file))
	}
	slices.Sort(origins)
	return slices.Compact(origins), err
}
