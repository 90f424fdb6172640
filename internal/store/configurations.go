package store

import (
	"errors"
	"fmt"
	"io"
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
	// touchEvery is how often what is in use is marked so, by its time.
	touchEvery = 24 * time.Hour
)

// Configurations keep the configurations that have been in force, as files that are
// named by the SHA-256 of what they hold. Several gates may share the folder.
type Configurations struct {
	dir  string
	keep time.Duration
	log  *slog.Logger

	mu     sync.Mutex
	inUse  string
	timer  *time.Timer
	closed bool
}

// OpenConfigurations returns those in a data_dir. What no gate has used for keep
// goes, but not before two days.
func OpenConfigurations(dataDir string, keep time.Duration, log *slog.Logger) *Configurations {
	return &Configurations{dir: filepath.Join(dataDir, configurationsDir), keep: max(keep, 2*touchEvery), log: log}
}

// Use keeps a configuration that is in force from now on, and returns its SHA-256.
// If it can't be written that is logged, and no more: decisions then name it, but can't
// be made again.
func (c *Configurations) Use(text []byte) (digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inUse = policy.Digest(string(text))
	if err := c.write(c.inUse, text); err != nil {
		c.log.Error("the configuration can't be kept as evidence; check the space and permissions of data_dir", "error", err, "sha256", c.inUse)
	}
	c.tend()
	return c.inUse
}

// Close ends the marking of what is in use.
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

func (c *Configurations) write(digest string, text []byte) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if _, err := readConfiguration(c.dir, digest); err == nil {
		return nil
	}
	return writeWhole(c.path(digest), text)
}

func (c *Configurations) path(digest string) string { return filepath.Join(c.dir, digest+".yaml") }

// tend marks what is in use, and lets go of what has not been for long. The caller
// holds the lock.
func (c *Configurations) tend() {
	if c.closed {
		return
	}
	now := time.Now()
	os.Chtimes(c.path(c.inUse), now, now)
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return // said already, by Use
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
		c.timer = time.AfterFunc(touchEvery, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.tend()
		})
		return
	}
	c.timer.Reset(touchEvery)
}

// ReadConfiguration returns one that is kept in a data_dir. The error is
// fs.ErrNotExist if it is not, and ErrChanged if it is another by now.
func ReadConfiguration(dataDir, digest string) ([]byte, error) {
	if !isDigest(digest) {
		return nil, fmt.Errorf("%q is not a SHA-256: %w", digest, fs.ErrNotExist)
	}
	return readConfiguration(filepath.Join(dataDir, configurationsDir), digest)
}

func readConfiguration(dir, digest string) ([]byte, error) {
	return readNamed(filepath.Join(dir, digest+".yaml"), digest, 64<<20)
}

// ErrChanged says that a file does not hold what its name says.
var ErrChanged = errors.New("it has been changed: it does not hold what its name says")

// readNamed reads a file that is named by the SHA-256 of what it holds.
func readNamed(path, digest string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, err
	}
	if policy.Digest(string(data)) != digest {
		return nil, fmt.Errorf("%s: %w", path, ErrChanged)
	}
	return data, nil
}

// writeWhole puts a whole file in place at once.
func writeWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o600), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
