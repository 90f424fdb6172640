package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"robotsgate/policy"
)

// tempPrefix begins the names of files that are being written.
const tempPrefix = ".new-"

// bodies are files named by the SHA-256 of what they hold.
type bodies struct{ dir string }

func newBodies(dir string) (*bodies, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w; check the permissions of data_dir", err)
	}
	return &bodies{dir}, nil
}

// path spreads files over folders by the first byte of their digest.
func (b *bodies) path(digest string) (string, error) {
	if !isDigest(digest) {
		return "", fmt.Errorf("%q is not a SHA-256", digest)
	}
	return filepath.Join(b.dir, digest[:2], digest), nil
}

func isDigest(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

func (b *bodies) read(digest string) ([]byte, error) {
	path, err := b.path(digest)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if policy.Digest(string(data)) != digest {
		os.Remove(path) // so that it is written anew
		return nil, fmt.Errorf("%s does not hold what its name says", path)
	}
	return data, nil
}

// write puts a whole file in place at once, or leaves the one that is there: a
// reader never sees half of one, and two gates may write the same. It tells
// whether there was none.
func (b *bodies) write(digest string, body []byte) (isNew bool, err error) {
	path, err := b.path(digest)
	if err != nil {
		return false, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(body)) {
		return false, nil
	}
	f, err := createIn(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err == nil, err
}

// createIn makes a file that is only the owner's, and its folder if need be.
func createIn(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, tempPrefix+"*")
}

func (b *bodies) remove(digest string) error {
	path, err := b.path(digest)
	if err != nil {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
