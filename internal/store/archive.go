package store

import (
	"cmp"
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

// files returns the paths that begin with a text, of files with names of so many parts.
func (x *Reader) files(begins string, of int) (paths []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(begins))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if path := filepath.Join(filepath.Dir(begins), e.Name()); strings.HasPrefix(path, begins) && parts(e.Name()) == of {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// each calls see for the answers that are kept in files with paths that begin with a text, and for their bodies. Of those
// that were superseded it looks into files with paths that end with another text.
func (x *Reader) each(begins, ends string, see func(snapshot.Scope, snapshot.Answer, []byte)) error {
	sets, err := x.files(begins, setParts)
	inForce := map[string]bool{} // by the paths that they will have
	for _, path := range sets {
		var set setLine
		body, ok := x.read(path, &set)
		if !ok {
			continue
		}
		set.Body = body
		for _, a := range set.InForce() {
			inForce[pastPath(path, a)] = true
			see(snapshot.ParseKey(set.Key), a, body[:a.Bytes])
		}
	}
	past, failed := x.files(begins, pastParts) // later, or else an answer that is superseded meanwhile would be missed
	for _, path := range past {
		if inForce[path] || !strings.HasSuffix(path, ends) { // the first, if a gate was killed before it replaced the set
			continue
		}
		var a answerLine
		if body, ok := x.read(path, &a); ok && a.Snapshot != nil {
			a.Bytes = int64(len(body))
			see(snapshot.ParseKey(a.Key), a.Answer, body)
		}
	}
	return cmp.Or(err, failed)
}

// Body returns a file of an origin by its SHA-256. The error is fs.ErrNotExist if it is not kept, and
// snapshot.ErrChanged if it does not match its name.
func (x *Reader) Body(origin, digest string) (text string, err error) {
	err = fmt.Errorf("%q is no SHA-256 of a file that is kept: %w", digest, fs.ErrNotExist)
	if digest == "" {
		return "", err
	}
	ends := "_" + what(&snapshot.Snapshot{SHA256: digest})
	failed := x.each(x.originPath(origin), ends, func(_ snapshot.Scope, a snapshot.Answer, body []byte) {
		switch {
		case err == nil || a.Snapshot.SHA256 != digest:
		case snapshot.Digest(body) == digest:
			text, err = string(body), nil
		default:
			err = snapshot.ErrChanged // another file may have it
		}
	})
	return text, cmp.Or(failed, err)
}

// History returns the answers of an origin to requests for its robots.txt, the oldest first.
func (x *Reader) History(origin string) ([]snapshot.Answer, error) { return x.history(origin, false) }

// TDMRepHistory returns those to requests for its tdmrep.json.
func (x *Reader) TDMRepHistory(origin string) ([]snapshot.Answer, error) {
	return x.history(origin, true)
}

func (x *Reader) history(origin string, tdmrep bool) (all []snapshot.Answer, err error) {
	err = x.each(x.originPath(origin), "", func(of snapshot.Scope, a snapshot.Answer, _ []byte) {
		if of.Origin == origin && of.TDMRep == tdmrep {
			a.Asker = of.Asker
			all = append(all, a)
		}
	})
	slices.SortStableFunc(all, func(a, b snapshot.Answer) int { return a.From.Compare(b.From) })
	return all, err
}

// HostOrigins returns the origins of a host, on all ports, of which there are answers. They are sorted.
func (x *Reader) HostOrigins(host string) (origins []string, err error) {
	err = x.each(x.hostPath(host), "", func(of snapshot.Scope, _ snapshot.Answer, _ []byte) {
		origins = append(origins, of.Origin)
	})
	slices.Sort(origins)
	return slices.Compact(origins), err
}
