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

// rotate closes the file and renames it, or removes it if no rotated files are kept.
func (o *output) rotate() error {
	if err := o.close(); err != nil {
		return err
	}
	if o.keep == 0 {
		return os.Remove(o.path)
	}
	if _, err := o.rename(); err != nil {
		return err
	}
	rotated := rotatedFiles(o.path)
	for _, old := range rotated[:max(len(rotated)-o.keep, 0)] {
		os.Remove(old) // on failure, again at the next rotation
	}
	return nil
}

// rename gives the file the name of a rotated one, which it returns.
func (o *output) rename() (name string, err error) {
	ext := filepath.Ext(o.path)
	for at := time.Now().UTC(); ; at = at.Add(time.Millisecond) {
		name = strings.TrimSuffix(o.path, ext) + "-" + at.Format(rotatedTime) + ext
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return name, os.Rename(o.path, name)
}

// rotatedFiles returns the rotated files of a log, compressed or not, the oldest first.
func rotatedFiles(path string) (files []string) {
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
