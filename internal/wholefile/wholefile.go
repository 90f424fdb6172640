// Package wholefile writes files that are there as a whole, or not at all.
package wholefile

import (
	"cmp"
	"os"
	"path/filepath"
)

// Write makes or replaces a file, which only its owner can read. No reader sees a part of it, and several processes may
// write it. When it returns without an error, the disk has the new contents. A kill can leave a temporary file, whose
// name begins with a dot, in the folder.
func Write(path string, data []byte) error {
	return WriteFunc(path, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// WriteFunc is Write with the contents that a function writes. If the function fails, nothing changes.
func WriteFunc(path string, write func(*os.File) error) error {
	err := replace(path, func(f *os.File) error { return cmp.Or(write(f), f.Sync()) })
	if err != nil {
		return err
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil { // the name has to be safe against a power cut too
		_ = d.Sync() // not every system can
		d.Close()
	}
	return nil
}

// WriteSoon is Write, some hundred times as fast, for a file that may be lost. A kill of the process does not harm it.
// After a power cut soon after it, the file may be empty or not there.
func WriteSoon(path string, data []byte) error {
	return replace(path, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

func replace(path string, write func(*os.File) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // its mode is 0600
	if err != nil {
		return err
	}
	if err = cmp.Or(write(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
