package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// bodies are files named by the SHA-256 of their content.
type bodies struct{ dir string }

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
	return readNamed(path, digest)
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
	return os.Remove(path)
}
