package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"robotsgate/policy"
)

// tempPrefix begins the names of files that are being written.
const tempPrefix = ".new-"

// withAdvice says what to check if the system refused an operation in a folder.
func withAdvice(err error, dir string) error {
	if errors.As(err, new(syscall.Errno)) {
		return fmt.Errorf("%w; check the space and permissions of %s", err, dir)
	}
	return err
}

func isDigest(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// readNamed reads a file that is named by the SHA-256 of its content.
func readNamed(path, digest string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if policy.Digest(string(data)) != digest {
		return nil, fmt.Errorf("%s: %w", path, policy.ErrChanged)
	}
	return data, nil
}

// writeWhole puts a whole file in place at once, and makes its folder if need be. Only the owner can
// read it. A reader never sees half of it, and two processes may write the same.
func writeWhole(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
