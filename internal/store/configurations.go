package store

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"robotsgate/policy"
)

const (
	configurationsDir = "configurations"
	// touchInterval is how often the file in use gets a new time, which marks it as in use.
	touchInterval = 24 * time.Hour
)

// Configurations keep the configurations that were in force, as files named by the SHA-256 of
// their content. Several processes may share the folder.
type Configurations struct {
	dir  string
	keep time.Duration
	log  *slog.Logger

	mu     sync.Mutex
	inUse  string // digest
	timer  *time.Timer
	closed bool
}

// OpenConfigurations returns the configurations in a data folder. A file that no process has used
// for the time keep is removed, but not before two days.
func OpenConfigurations(dataDir string, keep time.Duration, log *slog.Logger) *Configurations {
	return &Configurations{dir: filepath.Join(dataDir, configurationsDir), keep: max(keep, 2*touchInterval), log: log}
}

// Use keeps a configuration that is in force from now on, and returns its SHA-256.
// If it can't be written that is only logged: decisions then name it, but can't
// be made again.
func (c *Configurations) Use(text []byte) (digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inUse = policy.Digest(string(text))
	if _, err := readConfiguration(c.dir, c.inUse); err != nil {
		err = writeWhole(c.path(c.inUse), text)
		if err != nil {
			c.log.Error("the configuration can't be kept as evidence; check the space and permissions of its folder", "error", err, "sha256", c.inUse)
		}
	}
	c.maintainLocked()
	return c.inUse
}

// Close stops the timer.
func (c *Configurations) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

func (c *Configurations) path(digest string) string { return filepath.Join(c.dir, digest+".yaml") }

// maintainLocked marks the file in use, and removes files that were not used for long.
func (c *Configurations) maintainLocked() {
	if c.closed {
		return
	}
	now := time.Now()
	os.Chtimes(c.path(c.inUse), now, now)
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return // Use has logged it
	}
	for _, e := range entries {
		digest := strings.TrimSuffix(e.Name(), ".yaml")
		info, err := e.Info()
		if err != nil || digest == c.inUse || !isDigest(digest) && !strings.HasPrefix(digest, tempPrefix) {
			continue
		}
		if now.Sub(info.ModTime()) >= c.keep {
			os.Remove(filepath.Join(c.dir, e.Name()))
		}
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(touchInterval, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.maintainLocked()
		})
		return
	}
	c.timer.Reset(touchInterval)
}

// ReadConfiguration returns a configuration that is kept in a data folder. The error is
// fs.ErrNotExist if it is not there, and ErrChanged if it was changed.
func ReadConfiguration(dataDir, digest string) ([]byte, error) {
	if !isDigest(digest) {
		return nil, fmt.Errorf("%q is not a SHA-256: %w", digest, fs.ErrNotExist)
	}
	return readConfiguration(filepath.Join(dataDir, configurationsDir), digest)
}

func readConfiguration(dir, digest string) ([]byte, error) {
	const maxBytes = 64 << 20
	return readNamed(filepath.Join(dir, digest+".yaml"), digest, maxBytes)
}
