package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxBody bounds the size of a body that is read.
const maxBody = 1 << 30

// bodies are files named by the SHA-256 of their content.
type bodies struct{ dir string }

func newBodies(dir string) (*bodies, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, withAdvice(err, filepath.Dir(dir))
	}
	return &bodies{dir}, nil
}

// path spreads files over folders by the first byte of their digest.
func (b *bodies) path(digest string) (string, error) {
	if !isDigest(digest) {
		return "", fmt.Errorf("%q is not a SHA-256: %w", digest, fs.ErrNotExist)
	}
	return filepath.Join(b.dir, digest[:2], digest), nil
}

func (b *bodies) read(digest string) ([]byte, error) {
	path, err := b.path(digest)
	if err != nil {
		return nil, err
	}
	data, err := readNamed(path, digest, maxBody)
	if errors.Is(err, ErrChanged) {
		os.Remove(path) // so that it is written anew
	}
	return data, err
}

// write writes a body unless there is a file for it. It reports whether there was none.
func (b *bodies) write(digest string, body []byte) (isNew bool, err error) {
	path, err := b.path(digest)
	if err != nil {
		return false, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(body)) {
		return false, nil
	}
	err = writeWhole(path, body)
	return err == nil, err
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
