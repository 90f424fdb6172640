package audit

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// leastHeads is how long heads are kept at least.
const leastHeads = 48 * time.Hour

// expiredFile lists the chains whose heads have been removed, one a line. A chain that has
// no head and is not listed was not written by a gate with this data_dir.
const expiredFile = "expired.txt"

// removeOldHeads removes the heads that have not been written for so long.
func removeOldHeads(dir string, keep time.Duration, log *slog.Logger) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there are none yet
	}
	var list []byte
	var paths []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < max(keep, leastHeads) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		chain, head := strings.CutSuffix(e.Name(), headSuffix)
		switch {
		case strings.HasSuffix(e.Name(), newSuffix):
			os.Remove(path)
		case head && !isAlive(path):
			list = append(append(list, chain...), '\n')
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return
	}
	if err := appendSynced(filepath.Join(dir, expiredFile), list); err != nil {
		log.Warn("old heads of the audit log's chains are not removed, since they can't be listed; check the space and permissions of data_dir", "error", err)
		return
	}
	for _, path := range paths {
		os.Remove(path)
	}
}

// appendSynced appends to a file, and waits until the disk has it.
func appendSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// Expired returns the chains whose heads have been removed from a folder.
func Expired(dir string) (map[string]bool, error) {
	data, err := os.ReadFile(filepath.Join(dir, expiredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	all := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if chain, whole := strings.CutSuffix(line, "\n"); whole {
			all[chain] = true
		}
	}
	return all, err
}
