package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"robotsgate/internal/wholefile"
	"robotsgate/policy/snapshot"
)

// KeepConfiguration keeps a configuration that was in force in a data_dir, as evidence for the decisions that are made by
// it, in a file named by the SHA-256 of its text.
func KeepConfiguration(dataDir string, text []byte) error {
	path := configurationFile(dataDir, snapshot.Digest(string(text)))
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return wholefile.Write(path, text)
}

// ReadConfiguration returns a configuration that is kept in a data_dir. The error is fs.ErrNotExist if it is not there,
// and snapshot.ErrChanged if it was changed.
func ReadConfiguration(dataDir, digest string) ([]byte, error) {
	if len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%q is not a SHA-256: %w", digest, fs.ErrNotExist)
	}
	path := configurationFile(dataDir, digest)
	data, err := os.ReadFile(path)
	if err == nil && snapshot.Digest(string(data)) != digest {
		err = fmt.Errorf("%s: %w", path, snapshot.ErrChanged)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func configurationFile(dataDir, digest string) string {
	return filepath.Join(dataDir, "configurations", digest+".yaml")
}
