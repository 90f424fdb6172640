// Package configurations keeps the configurations that were in force, as evidence for the decisions that were made
// by them.
package configurations

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"robotsgate/internal/wholefile"
	"robotsgate/policy/snapshot"
)

const (
	folder = "configurations"
	// touchInterval is how often the file in use gets a new time, which marks it as in use.
	touchInterval = 24 * time.Hour
)

// A Store keeps the configurations that were in force, as files named by the SHA-256 of
// their content. Several processes may share the folder.
type Store struct {
	dataDir string
	keep    time.Duration
	log     *slog.Logger

	mu     sync.Mutex
	inUse  string      // digest
	timer  *time.Timer // calls maintain
	closed bool
}

// Open returns the configurations in a data folder. A file that no process has used
// for the time keep is removed, but not before two days.
func Open(dataDir string, keep time.Duration, log *slog.Logger) *Store {
	c := &Store{dataDir: dataDir, keep: max(keep, 2*touchInterval), log: log}
	c.timer = time.AfterFunc(touchInterval, c.maintain)
	return c
}

// Use keeps a configuration that is in force from now on, and returns its SHA-256.
// If it can't be written that is only logged: decisions then name it, but can't
// be made again.
func (c *Store) Use(text []byte) (digest string) {
	digest = snapshot.Digest(string(text))
	if _, err := Read(c.dataDir, digest); err != nil {
		err := os.MkdirAll(filepath.Join(c.dataDir, folder), 0o700)
		if err = cmp.Or(err, wholefile.Write(pathOf(c.dataDir, digest), text)); err != nil {
			c.log.Error("the configuration can't be kept as evidence; check the space and permissions of its folder", "error", err, "sha256", digest)
		}
	}
	c.mu.Lock()
	c.inUse = digest
	c.mu.Unlock()
	c.maintain()
	return digest
}

// Close stops the timer.
func (c *Store) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.timer.Stop()
}

// maintain marks the file in use, and removes files that were not used for long.
func (c *Store) maintain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.timer.Reset(touchInterval)
	now := time.Now()
	os.Chtimes(pathOf(c.dataDir, c.inUse), now, now)
	dir := filepath.Join(c.dataDir, folder)
	entries, _ := os.ReadDir(dir) // Use has logged an error
	for _, e := range entries {
		digest := strings.TrimSuffix(e.Name(), ".yaml")
		info, err := e.Info()
		if err != nil || digest == c.inUse || !isDigest(digest) && !strings.HasPrefix(digest, ".") { // "." begins the names of temporary files
			continue
		}
		if now.Sub(info.ModTime()) >= c.keep {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// Read returns a configuration that is kept in a data folder. The error is
// fs.ErrNotExist if it is not there, and snapshot.ErrChanged if it was changed.
func Read(dataDir, digest string) ([]byte, error) {
	if !isDigest(digest) {
		return nil, fmt.Errorf("%q is not a SHA-256: %w", digest, fs.ErrNotExist)
	}
	return readNamed(pathOf(dataDir, digest), digest)
}

func pathOf(dataDir, digest string) string {
	return filepath.Join(dataDir, folder, digest+".yaml")
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
	if snapshot.Digest(string(data)) != digest {
		return nil, fmt.Errorf("%s: %w", path, snapshot.ErrChanged)
	}
	return data, nil
}
