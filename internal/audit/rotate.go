package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// rotatedTime is the form of the time in the name of a rotated file.
const rotatedTime = "2006-01-02T15-04-05.000"

// rotate renames the file, or removes it if no rotated files are kept.
func (o *output) rotate() error {
	if o.locked {
		defer o.close() // other gates wait until it is renamed
	} else if err := o.close(); err != nil { // systems without locks don't rename open files
		return err
	}
	if o.keep == 0 {
		return os.Remove(o.path)
	}
	ext := filepath.Ext(o.path)
	name := ""
	for at := time.Now().UTC(); ; at = at.Add(time.Millisecond) {
		name = strings.TrimSuffix(o.path, ext) + "-" + at.Format(rotatedTime) + ext
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err := os.Rename(o.path, name); err != nil {
		return err
	}
	rotated := RotatedFiles(o.path)
	for _, old := range rotated[:max(len(rotated)-o.keep, 0)] {
		os.Remove(old) // on failure, again at the next rotation
	}
	return nil
}

// filesOf returns the files of a log, the newest first; none if it is written to a stream.
func filesOf(path string) []string {
	info, err := os.Stat(path)
	if path == "-" || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	files := RotatedFiles(path)
	if err == nil {
		files = append(files, path)
	}
	slices.Reverse(files)
	return files
}

// RotatedFiles returns the rotated files of a log, compressed or not, the oldest first.
func RotatedFiles(path string) (files []string) {
	ext := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), ext) + "-"
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		at, hasPrefix := strings.CutPrefix(e.Name(), prefix)
		at, hasExt := strings.CutSuffix(strings.TrimSuffix(at, ".gz"), ext)
		if _, err := time.Parse(rotatedTime, at); err == nil && hasPrefix && hasExt {
			files = append(files, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(files)
	return files
}
