// Package wholefile writes files that are there as a whole, or not at all.
package wholefile

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
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
func WriteFunc(path string, content func(*os.File) error) error {
	err := write(path, func(f *os.File) error { return cmp.Or(content(f), f.Sync()) }, os.Rename)
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
	return write(path, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	}, os.Rename)
}

// CreateSoon is WriteSoon for a file that is not there: it replaces none. The error is fs.ErrExist if there is one. Some
// file systems can't, and it fails.
func CreateSoon(path string, data []byte) error {
	return write(path, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	}, func(from, to string) error {
		if err := os.Link(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	})
}

// write makes a file beside the path, and moves it there.
func write(path string, content func(*os.File) error, move func(from, to string) error) error {
	name := "." + filepath.Base(path) + "." + strconv.FormatUint(rand.Uint64(), 36)
	// Without O_NONBLOCK, which has no effect on a file, package os makes four more system calls.
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | syscall.O_NONBLOCK
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), name), flags, 0o600)
	if err != nil {
		return err
	}
	if err = cmp.Or(content(f), f.Close()); err == nil {
		err = move(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
