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
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

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

// Open returns the store in dir, and makes it on first use. The error is ErrInUse if another process uses it.
func Open(dir string, limits Limits, log *slog.Logger) (*Disk, error) {
	d, err := open(dir, limits, log)
	return d, withAdvice(err, dir)
}

func open(dataDir string, limits Limits, log *slog.Logger) (*Disk, error) {
	if err := setAsideOld(dataDir, log); err != nil {
		return nil, err
	}
	dir := filepath.Join(dataDir, snapshotsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	if err := take(lock, dir); err != nil {
		return nil, err
	}
	x, err := openIndex(dir, os.O_RDWR|os.O_CREATE, limits.Keep)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	for _, s := range x.segments {
		if s.damaged > 0 {
			log.Warn("a part of the snapshots is damaged; these robots.txt files will be fetched again", "file", s.index.Name(), "entries", s.damaged)
		}
	}
	return &Disk{Reader: x, limits: limits, entries: maxEntries, log: log, lock: lock}, nil
}

// take takes the lock of a folder. The error is ErrInUse if another process has it.
func take(lock *flock.Flock, dir string) error {
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = fmt.Errorf("%s: %w", dir, ErrInUse)
	}
	return err
}

// Close ends the store. Load finds nothing afterwards.
func (d *Disk) Close() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.Reader.Close()
	d.segments, d.lines, d.bodies, d.answers = nil, nil, nil, nil
	return errors.Join(err, d.lock.Close())
}

// Read opens the snapshots in a folder, also while a gate uses it, and does not see later changes. The error is
// fs.ErrNotExist if there are none. Keep is that of [Limits].
func Read(dataDir string, keep time.Duration) (r *Reader, err error) {
	const most = 10
	for range most { // a gate may remove a segment meanwhile
		if r, err = openIndex(filepath.Join(dataDir, snapshotsDir), os.O_RDONLY, keep); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return r, err
}

// Load returns the set under a key. A set that can't be read is as if it were not there.
func (d *Disk) Load(_ context.Context, key string) (snapshot.Set, bool) {
	d.mu.RLock() // throughout, or else the body may be gone that the set has named
	r, body, err := d.load(key)
	var text id
	if r != nil && r.Good != nil {
		text = bodyID(r.Good.SHA256)
		if snapshot.Digest(string(body)) != r.Good.SHA256 { // it is elsewhere, or damaged
			body, err = d.body(r.Good.SHA256)
		}
		r.Body = body
	}
	was := d.bodies[text]
	d.mu.RUnlock()
	if r != nil && err != nil {
		d.mu.Lock()
		if d.bodies[text] == was {
			delete(d.bodies, text) // so that it is written again
		}
		d.mu.Unlock()
	}
	if err != nil {
		d.log.Warn("a stored snapshot can't be read; it will be fetched again", "origin", key, "error", err)
	}
	if err != nil || r == nil {
		return snapshot.Set{}, false
	}
	return r.Set, true
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
	if d.lines == nil {
		return os.ErrClosed
	}
	b := batch{texts: map[id]bool{}}
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		if len(b.items) == 0 && (d.full() || !d.checked) { // before the batch relies on what the store has
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

// A batch is what is appended at once.
type batch struct {
	data  []byte
	items []item
	texts map[id]bool // the bodies in data
}

// saveSet adds the set of a key to a batch. An empty one removes the set there. Answers of the set
// before that the new one lacks become history.
func (d *Disk) saveSet(b *batch, key string, set snapshot.Set) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	old, _, err := d.load(key)
	if old == nil && err == nil && set.Empty() {
		return nil // there is nothing to forget
	}
	if old == nil || err != nil {
		old = &snapshot.DatedSet{} // one that can't be read must not prevent the next one
	}
	next := snapshot.DatedSet{Set: set}
	next.Body = nil // it follows the line
	if next.Last == next.Good {
		next.Last = nil
	}
	scope := snapshot.ParseKey(key)
	host, _ := canonical.SplitPort(hostOf(scope.Origin))
	it := item{kind: otherSet, key: idOf(key), host: idOf(host)}
	if scope.Slot == "" && !scope.TDMRep {
		it.kind = originSet
	}
	scope.Slot = ""
	it.file = idOf(scope.Key())
	for _, a := range next.Follow(old) {
		if d.limits.Keep <= 0 {
			break
		}
		past := it
		past.kind, past.at, past.text = answer, a.To.UnixNano(), bodyID(a.Snapshot.SHA256)
		past.key = idOf(fmt.Sprint(key, a.Slot, a.From, a.Snapshot.Status, a.Snapshot.SHA256))
		if err := b.add(past, answerLine{key, a}, nil); err != nil {
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
		it.hasBody = !b.texts[it.text] && (err != nil || d.bodies[it.text].segment == 0) // what follows a damaged line may be damaged too
	}
	return b.add(it, setLine{key, next}, set.Body)
}

// add adds a line, and the body if the item has it.
func (b *batch) add(it item, line any, body []byte) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	it.offset = uint32(len(b.data))
	b.data = append(append(b.data, data...), '\n')
	it.line = uint32(len(b.data)) - it.offset
	it.sum = crc32.Checksum(b.data[it.offset:], castagnoli)
	if it.hasBody {
		it.body = uint32(len(body))
		b.data = append(append(b.data, body...), '\n')
		b.texts[it.text] = true
	}
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
	*b = batch{texts: map[id]bool{}}
	return nil
}

// withAdvice says what to check if the system refused an operation in a folder.
func withAdvice(err error, dir string) error {
	if errors.As(err, new(syscall.Errno)) {
		return fmt.Errorf("%w; check the space and permissions of %s", err, dir)
	}
	return err
}

// setAsideOld moves snapshots of the form of earlier versions, an index in snapshots.db and a file for each body, into a
// folder of their own.
func setAsideOld(dataDir string, log *slog.Logger) error {
	const oldIndex = "snapshots.db"
	if _, err := os.Stat(filepath.Join(dataDir, oldIndex)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	lock := flock.New(filepath.Join(dataDir, oldIndex), flock.SetFlag(os.O_RDWR))
	if err := take(lock, dataDir); err != nil {
		return err // a gate of an earlier version uses it
	}
	if err := lock.Close(); err != nil { // some systems don't rename files that are open
		return err
	}
	aside := filepath.Join(dataDir, "old-snapshots")
	for n := 2; ; n++ { // the earlier version may have run again since
		if _, err := os.Stat(filepath.Join(aside, oldIndex)); err != nil {
			break
		}
		aside = filepath.Join(dataDir, fmt.Sprint("old-snapshots-", n))
	}
	if err := os.MkdirAll(filepath.Join(aside, snapshotsDir), 0o700); err != nil {
		return err
	}
	folders, _ := filepath.Glob(filepath.Join(dataDir, snapshotsDir, "[0-9a-f][0-9a-f]")) // of bodies, by their SHA-256
	for _, path := range append(folders, filepath.Join(dataDir, oldIndex)) {              // which comes last: it says that there is something to move
		rel, _ := filepath.Rel(dataDir, path)
		if err := os.Rename(path, filepath.Join(aside, rel)); err != nil {
			return err
		}
	}
	log.Warn("the snapshots have a new form: those of the earlier version are set aside, and robots.txt files will be fetched again; the earlier version reads them for audit --replay and history", "set_aside", aside)
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

// hostOf returns the host of an origin, with its port.
func hostOf(origin string) string {
	_, host, _ := strings.Cut(origin, "://")
	return host
}
