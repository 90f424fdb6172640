// Package store keeps the snapshots of origins' files beyond the life of the process.
//
// [Open] returns a [Disk], which is a snapshot.Store and a snapshot.Archive in a folder. [Read] reads the folder
// beside the gates that use it. Each set is a file of its own, which a newer one replaces, and so is each answer that
// was superseded; file.go says how they are named.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"robotsgate/internal/wholefile"
	"robotsgate/policy/snapshot"
)

const snapshotsDir = "snapshots"

// A Disk is a snapshot.Store and a snapshot.Archive in a folder. Several processes may use the folder.
type Disk struct {
	*Reader
	limits Limits
	log    *slog.Logger

	origins, bytes atomic.Int64  // on disk
	crowded        chan struct{} // asks for a walk
	stop           context.CancelFunc
	walking        sync.WaitGroup
}

// Open returns the store in a folder, and makes it on first use.
func Open(dataDir string, limits Limits, log *slog.Logger) (*Disk, error) {
	dir := filepath.Join(dataDir, snapshotsDir)
	if err := usable(dir); err != nil {
		return nil, withAdvice(err, dataDir)
	}
	d := &Disk{limits: limits, log: log, crowded: make(chan struct{}, 1)}
	d.Reader = &Reader{dir: dir, warn: func(err error) {
		log.Warn("a stored snapshot can't be read, and is as if it were not there", "error", err)
	}}
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.walking.Go(func() { d.walks(ctx) })
	return d, nil
}

// usable makes a folder, and checks that files can be made in it.
func usable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Own makes the caller the owner of what only one process may write in a folder, until it calls release. It is nil if
// another process is the owner.
func Own(dataDir string) (release func() error, err error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, withAdvice(err, dataDir)
	}
	lock := flock.New(filepath.Join(dataDir, "lock"), flock.SetPermissions(0o600))
	if owned, err := lock.TryLock(); err != nil || !owned {
		return nil, withAdvice(err, dataDir)
	}
	return lock.Close, nil
}

// Close ends the walks through the folder.
func (d *Disk) Close() {
	d.stop()
	d.walking.Wait()
}

// withAdvice says what to check if the system refused an operation in a folder.
func withAdvice(err error, dir string) error {
	if errors.As(err, new(syscall.Errno)) {
		return fmt.Errorf("%w; check the space and permissions of %s", err, dir)
	}
	return err
}

// Load returns the set under a key. A set that can't be read is as if it were not there.
func (d *Disk) Load(_ context.Context, key string) (snapshot.Set, bool) {
	line, ok := d.load(key, d.setPath(key))
	return line.Set, ok
}

// Acquire gives no permissions: two processes that use the folder may fetch a file at the same time.
func (d *Disk) Acquire(context.Context, string) (release func(), changed bool) { return nil, false }

// Save replaces the file of a set. Before that it makes files of the answers that are superseded, so that a kill in
// between loses none.
func (d *Disk) Save(ctx context.Context, key string, set snapshot.Set) error {
	return withAdvice(d.save(ctx, key, set), filepath.Dir(d.dir))
}

func (d *Disk) save(ctx context.Context, key string, set snapshot.Set) error {
	path, next := d.setPath(key), setLine{key, snapshot.DatedSet{Set: set}}
	if next.Body = nil; next.Last == next.Good { // the body follows the line
		next.Last = nil
	}
	before, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) { // as for most
		if set.Empty() {
			return nil
		}
		err := d.put(wholefile.CreateSoon, path, next, set.Body)
		if errors.Is(err, fs.ErrNotExist) {
			os.Mkdir(filepath.Dir(path), 0o700)
			err = d.put(wholefile.CreateSoon, path, next, set.Body)
		}
		if err == nil {
			return nil
		}
	}
	unlock, err := d.lock(ctx, filepath.Dir(path)) // so that no process replaces an answer that another one has not read
	if err != nil {
		return err
	}
	defer unlock()
	old, _ := d.load(key, path) // one that can't be read must not prevent the next one
	for _, a := range next.Follow(&old.DatedSet) {
		if d.limits.Keep <= 0 {
			break
		}
		var body []byte
		if old.Good != nil && a.Snapshot.SHA256 == old.Good.SHA256 {
			body = old.Body
		}
		if err := d.put(wholefile.WriteSoon, pastPath(path, a), answerLine{key, a}, body); err != nil {
			return err
		}
	}
	if before != nil {
		d.count(path, -1, before.Size())
	}
	if !set.Empty() {
		return d.put(wholefile.WriteSoon, path, next, set.Body)
	}
	if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) { // a walk has removed it
		return nil
	}
	return err
}

// put writes a file.
func (d *Disk) put(write func(path string, data []byte) error, path string, line any, body []byte) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	data = append(append(data, '\n'), body...)
	if err := write(path, data); err != nil {
		return err
	}
	d.count(path, 1, int64(len(data)))
	return nil
}

// lock keeps other processes and goroutines from replacing and removing files in a folder.
func (d *Disk) lock(ctx context.Context, dir string) (unlock func() error, err error) {
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	_, err = lock.TryLockContext(ctx, time.Millisecond)
	return lock.Close, err
}
