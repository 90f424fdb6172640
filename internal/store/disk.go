// Package store keeps the snapshots of origins' files beyond the life of
// the process.
//
// [Open] returns a [Disk], which is a snapshot.Store and a snapshot.Archive in a folder. [Read] reads the folder
// while a gate uses it. A [Memory] is for a process without a folder.
//
// On disk there are segments: data files, to which one process appends, and an index file for each. What is no longer
// needed stays in them until the rest of a segment is moved to the end, and its files are removed. An index in memory
// knows where everything is.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"

	"robotsgate/policy/canonical"
	"robotsgate/policy/snapshot"
)

const snapshotsDir = "snapshots"

// ErrInUse says that another process uses the snapshots.
var ErrInUse = errors.New("another gate uses the folder")

// A Disk is a snapshot.Store and a snapshot.Archive in a folder.
type Disk struct {
	*Reader
	limits  Limits
	entries int // maxEntries
	log     *slog.Logger
	lock    *flock.Flock

	writing sync.Mutex // held by the one that appends or removes
	checked bool       // the store is within its limits, which may be lower than before the start
}

// Open returns the store in a folder, and makes it on first use. The error is ErrInUse if another process uses it.
func Open(dataDir string, limits Limits, log *slog.Logger) (d *Disk, err error) {
	defer func() { err = withAdvice(err, dataDir) }()
	dir := filepath.Join(dataDir, snapshotsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	if locked, err := lock.TryLock(); err != nil {
		return nil, err
	} else if !locked {
		return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
	}
	x, err := openIndex(dir, os.O_RDWR, limits.Keep)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	for _, file := range x.lost {
		aside := filepath.Join(dir, damaged+dataSuffix)
		log.Warn("a file of the snapshots has lost its index file; these robots.txt files will be fetched again", "file", file, "set_aside", aside)
		_ = os.Rename(file, aside) // otherwise the next start tries it again
	}
	for _, s := range x.segments {
		if s.damaged > 0 {
			log.Warn("a part of the snapshots is damaged; these robots.txt files will be fetched again", "file", s.index.Name(), "entries", s.damaged)
		}
	}
	if _, err := os.Stat(filepath.Join(dataDir, "snapshots.db")); err == nil && len(x.segments) == 0 {
		log.Warn("snapshots.db, and the folders snapshots/00 to snapshots/ff, are of an earlier version and not used: robots.txt files will be fetched again; keep them as long as that version may have to replay its audit log", "data_dir", dataDir)
	}
	return &Disk{Reader: x, limits: limits, entries: maxEntries, log: log, lock: lock}, nil
}

// Close ends the store. Load finds nothing afterwards.
func (d *Disk) Close() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.Reader.Close()
	d.segments, d.records, d.answers = nil, nil, nil
	return errors.Join(err, d.lock.Close())
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
	d.mu.RLock()
	set, err := d.load(idOf(key))
	d.mu.RUnlock()
	if err == nil && set.Good != nil && snapshot.Digest(set.Body) != set.Good.SHA256 {
		err = snapshot.ErrChanged
	}
	if err != nil {
		d.log.Warn("a stored snapshot can't be read; it will be fetched again", "origin", key, "error", err)
	}
	if err != nil || set.Key != key || set.Empty() {
		return snapshot.Set{}, false
	}
	return set.Set, true
}

// Acquire grants permission at once: no other process uses the folder.
func (d *Disk) Acquire(context.Context, string) (release func(), changed bool) {
	return nil, false
}

// Save appends sets, and the answers that they supersede.
func (d *Disk) Save(_ context.Context, sets map[string]snapshot.Set) error {
	return withAdvice(d.save(sets), filepath.Dir(d.dir))
}

func (d *Disk) save(sets map[string]snapshot.Set) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.records == nil {
		return os.ErrClosed
	}
	var b batch
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		if len(b.items) == 0 && (d.full() || !d.checked) {
			if err := d.makeRoom(); err != nil {
				return err
			}
			d.checked = !d.crowded()
		}
		if err := d.saveSet(&b, key, sets[key]); err != nil {
			return err
		}
		if len(b.data) >= d.limits.batch() {
			if err := d.append(&b); err != nil {
				return err
			}
		}
	}
	return d.append(&b)
}

// saveSet adds the set of a key to a batch. An empty one removes the set there. Answers of the set
// before that the new one lacks become history.
func (d *Disk) saveSet(b *batch, key string, set snapshot.Set) error {
	it := itemOf(key)
	old, err := d.load(it.key) // nobody else changes what mu guards. One that can't be read must not prevent the next one.
	if err == nil && set.Empty() && old.Key != key {
		return nil // there is nothing to forget
	}
	next := snapshot.DatedSet{Set: set}
	next.Body = nil // it follows the line
	if next.Last == next.Good {
		next.Last = nil
	}
	follow := next.Follow
	if old.Key != key { // there is none, or one of another key, which is forgotten
		follow = new(snapshot.DatedSet).Follow
	}
	for _, a := range follow(&old.DatedSet) {
		if d.limits.Keep <= 0 {
			break
		}
		past, body := itemOf(old.Key), []byte(nil)
		past.kind, past.at = answer, a.To.UnixNano()
		past.key = idOf(fmt.Sprint(old.Key, a.From, a.Snapshot.Status, a.Snapshot.SHA256))
		if old.Good != nil && a.Snapshot.SHA256 == old.Good.SHA256 {
			past.text, body = bodyID(a.Snapshot.SHA256), old.Body
		}
		if err := b.add(past, answerLine{old.Key, a}, body); err != nil {
			return err
		}
	}
	if set.Empty() {
		it.kind = forget
		b.items = append(b.items, it)
		return nil
	}
	if set.Good != nil {
		it.text = bodyID(set.Good.SHA256)
	}
	return b.add(it, setLine{key, next}, set.Body)
}

// itemOf returns an item for the set of a key.
func itemOf(key string) item {
	scope := snapshot.ParseKey(key)
	_, authority, _ := strings.Cut(scope.Origin, "://")
	host, _ := canonical.SplitPort(authority)
	it := item{key: idOf(key), host: idOf(host)}
	if it.kind = otherSet; !scope.TDMRep {
		it.kind = originSet
	}
	scope.Asker = ""
	it.file = idOf(scope.Key())
	return it
}

// A batch is what is appended at once.
type batch struct {
	data  []byte
	items []item
}

// add adds a line, and the body that follows it.
func (b *batch) add(it item, line any, body []byte) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	it.offset, it.line, it.body, it.sum = uint32(len(b.data)), uint32(len(data)), uint32(len(body)), crc32.Checksum(data, castagnoli)
	b.data = append(append(b.data, data...), body...)
	b.items = append(b.items, it)
	return nil
}

// append appends a batch to the last segment, or to a new one if that is full, and empties it.
func (d *Disk) append(b *batch) error {
	if len(b.items) == 0 {
		return nil
	}
	s, err := d.last()
	if err != nil {
		return err
	}
	if err := s.append(b.data, b.items); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.size += int64(len(b.data))
	s.items += int64(len(b.items))
	for i := range b.items {
		d.add(&b.items[i])
	}
	*b = batch{}
	return nil
}

// A Usage is how much a store holds.
type Usage struct {
	Origins int64
	Bytes   int64
	Bound   int64 // on Bytes
}

// Usage returns what is on disk.
func (d *Disk) Usage() Usage {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return Usage{Origins: d.origins, Bytes: d.bytes(), Bound: d.limits.Bytes}
}
