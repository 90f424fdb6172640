package audit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// minKeepHeads is how long heads are kept at least.
const minKeepHeads = 48 * time.Hour

// expiredFile lists the heads that have been removed, one a line, as JSON. So every chain can
// be compared with its last head, and a chain without one was not written by a gate that
// keeps its heads here.
//
// A line may be the name of a chain only, as an earlier version wrote it.
const expiredFile = "expired.txt"

// removeOldHeads removes the heads that have not been written for a time.
func removeOldHeads(dir string, keep time.Duration, log *slog.Logger) {
	entries, _ := os.ReadDir(dir) // if it can't be read there are none yet
	heads, _ := Heads(dir)        // without those that can't be read
	list := []byte{'\n'}          // ends a line that a power cut has left
	var listed []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < max(keep, minKeepHeads) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if strings.HasSuffix(path, newSuffix) {
			os.Remove(path)
		}
		chain, isHead := strings.CutSuffix(e.Name(), headSuffix)
		if _, runs := gateOf(path); !isHead || runs {
			continue
		}
		h := heads[chain]
		if h.Hash == "" {
			h = Head{Chain: chain, Time: info.ModTime().UTC()} // it could not be read
		}
		if line, err := json.Marshal(h); err == nil {
			list = append(append(list, line...), '\n')
			listed = append(listed, path)
		}
	}
	if len(listed) == 0 {
		return
	}
	if err := appendSynced(filepath.Join(dir, expiredFile), list); err != nil {
		log.Warn("old positions of the audit log's chains are not removed, since they can't be listed; check the space and permissions of the folder", "folder", dir, "error", err)
		return
	}
	for _, path := range listed {
		os.Remove(path)
	}
}

// appendSynced appends to a file, and waits until the disk has the data.
func appendSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// Expired returns the heads that have been removed from a folder, by their chains. If only the
// chain's name is known, the head has no hash, and its time is the latest at which the chain
// can have been written to.
func Expired(dir string) (map[string]Head, error) {
	path := filepath.Join(dir, expiredFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	data, errRead := os.ReadFile(path)
	if err := errors.Join(err, errRead); err != nil {
		return nil, err
	}
	all := map[string]Head{}
	for line := range strings.Lines(string(data)) {
		name, whole := strings.CutSuffix(line, "\n")
		// A name was added to the list when its head had not been written for minKeepHeads.
		h := Head{Chain: name, Time: info.ModTime().Add(-minKeepHeads)}
		if strings.HasPrefix(line, "{") {
			h = Head{}
			whole = json.Unmarshal([]byte(line), &h) == nil
		}
		if whole && name != "" {
			all[h.Chain] = h
		}
	}
	return all, nil
}
