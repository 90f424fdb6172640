package policy

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"

	"robotsgate/policy/robotstxt"
)

// A Store keeps records beyond what fits into memory, and beyond the life of
// the process. It may forget a record at any time, which costs a fetch; it must
// not return one that was not saved. Implementations are safe for concurrent use.
type Store interface {
	// Load returns the record under a key, which is that of a [Scope]. ok is false if
	// there is none.
	Load(key string) (rec Record, ok bool)
	// Save keeps the records, by key, and forgets those that are empty. The map is the
	// store's only for the call.
	Save(map[string]Record) error
}

// An entry is a record with its rules compiled: what requests are decided by.
// It is immutable but for renewing.
type entry struct {
	Record
	file     *robotstxt.File // the rules of Record.Good; nil without
	renewing atomic.Bool     // a background fetch has been started for it
}

// record returns what is known, which is nothing without an entry.
func (e *entry) record() *Record {
	if e == nil {
		return &Record{}
	}
	return &e.Record
}

func newEntry(rec Record, maxBytes int) *entry {
	if !rec.Good.good() {
		rec.Good = nil // a 206, which earlier versions stored as a copy
	}
	e := &entry{Record: rec}
	if rec.Good != nil {
		good := *rec.Good
		e.file = robotstxt.Parse([]byte(good.Body), maxBytes)
		// The compiled file keeps the bytes; a second copy would double the price.
		good.Body = e.file.Body()
		if e.file.Truncated() { // robots.max_bytes has been lowered since
			good.SHA256, good.Cut = Digest(good.Body), true
		}
		good.compact()
		if rec.Last == rec.Good {
			e.Last = &good
		}
		e.Good = &good
	}
	return e
}

// cost estimates the memory that an entry holds, in bytes.
func (e *entry) cost(key string) int64 {
	const fixed = 300 // the entry, and ristretto's own book-keeping
	n := fixed + len(key) + e.Size()
	if e.file != nil {
		n += e.file.Size()
	}
	return int64(n)
}

// A cache holds entries by the key of their [Scope]: ristretto for most, and in front of the
// store an exact map of what the store does not have yet. Ristretto may drop or
// delay what it is given, which then costs a read of the store, never a fetch.
type cache struct {
	store    Store
	maxBytes int // of a robots.txt
	log      *slog.Logger
	down     outages

	mu      sync.RWMutex
	front   *ristretto.Cache[string, *entry]
	closed  bool              // ristretto panics when it is used during its Close
	pending map[string]*entry // fetched, but not yet saved
	earlier []unsaved         // that others have taken the place of before
	bytes   int64             // what both hold
	most    int64             // of bytes: they are beside what ristretto holds

	wake    chan struct{}
	ending  sync.Once
	stop    chan struct{}
	stopped chan struct{}
}

const (
	// saveEvery bounds what a sudden end loses: a snapshot is on disk a second
	// after the decision that it was fetched for.
	saveEvery = 250 * time.Millisecond
	// retrySave is the pause after a write that failed.
	retrySave = 5 * time.Second
	// leastPending is how many bytes may wait for the store, if half of
	// robots.cache_bytes is less: more than is fetched within saveEvery.
	leastPending = 40 << 20
)

func newCache(bytes int64, maxBytes int, store Store, log *slog.Logger) (*cache, error) {
	front, err := ristretto.NewCache(&ristretto.Config[string, *entry]{
		NumCounters: min(max(bytes/200, 10_000), 20_000_000), // ten for each entry of 2 KB
		MaxCost:     bytes,
		BufferItems: 64,
	})
	if err != nil {
		return nil, fmt.Errorf("robots.cache_bytes: %w", err)
	}
	c := &cache{
		front: front, store: store, maxBytes: maxBytes, log: log,
		pending: map[string]*entry{}, most: max(bytes/2, leastPending),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go c.saveLoop()
	return c, nil
}

// quick returns an entry if it is in memory, else nil.
func (c *cache) quick(key string) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.pending[key]; e != nil || c.closed {
		return e
	}
	e, _ := c.front.Get(key)
	return e
}

// stored returns the newest entry under a key, from the store if need be; nil
// if nothing is known. It goes past ristretto, which may still hold an older one.
func (c *cache) stored(key string) *entry {
	c.mu.RLock()
	e := c.pending[key]
	c.mu.RUnlock()
	if e != nil {
		return e
	}
	rec, ok := c.store.Load(key)
	if !ok {
		return nil
	}
	return newEntry(rec, c.maxBytes)
}

// load is stored, and keeps the entry in memory. It must not be called between
// the jobs to an origin, lest it replaces what one has just put.
func (c *cache) load(key string) *entry {
	e := c.stored(key)
	if e != nil {
		c.down.note(key, &e.Record)
		c.mu.RLock()
		defer c.mu.RUnlock()
		c.keep(key, e)
	}
	return e
}

// put makes an entry the one that is found from now on.
func (c *cache) put(key string, e *entry) {
	cost := e.cost(key)
	c.down.note(key, &e.Record)
	c.mu.Lock()
	c.supersede(key, e)
	c.forget(key)
	for o := range c.pending { // any will do: the store is failing
		if c.bytes+cost <= c.most {
			break
		}
		c.forget(o)
	}
	c.pending[key] = e
	c.bytes += cost
	c.keep(key, e)
	c.mu.Unlock()
	c.nudge()
}

// forget ends the wait of an entry for the store. The caller holds the lock.
func (c *cache) forget(key string) {
	if e := c.pending[key]; e != nil {
		c.bytes -= e.cost(key)
		delete(c.pending, key)
	}
}

// keep hands an entry to ristretto. The caller holds the lock, or a reader's.
func (c *cache) keep(key string, e *entry) {
	if !c.closed {
		c.front.Set(key, e, e.cost(key))
	}
}

func (c *cache) saveLoop() {
	defer close(c.stopped)
	var said time.Time
	for {
		select {
		case <-c.wake:
		case <-c.stop:
			c.save(&said)
			return
		}
		pause := saveEvery // gather a burst into one write
		if !c.save(&said) {
			pause = retrySave
			c.nudge()
		}
		select {
		case <-time.After(pause):
		case <-c.stop:
		}
	}
}

// nudge asks for a save.
func (c *cache) nudge() {
	select {
	case c.wake <- struct{}{}:
	default: // asked for already
	}
}

// save writes what is pending, and lets go of it once ristretto has it or has
// refused it. It returns false if the store can't be written; said is when that
// was last reported.
func (c *cache) save(said *time.Time) bool {
	c.mu.RLock()
	rounds := c.rounds()
	c.mu.RUnlock()
	if len(rounds) == 0 {
		return true
	}
	for _, round := range rounds {
		if err := c.store.Save(recordsOf(round)); err != nil {
			if time.Since(*said) >= time.Minute {
				*said = time.Now()
				c.log.Error("snapshots can't be saved, they stay in memory; check the space and permissions of data_dir", "error", err, "origins", len(round))
			}
			return false
		}
		c.saved(round)
	}
	c.front.Wait() // for the Sets of put to be carried out or dropped
	c.mu.Lock()
	defer c.mu.Unlock()
	for o, e := range rounds[len(rounds)-1] {
		if c.pending[o] != e {
			continue // fetched again meanwhile
		}
		// Of two Sets in a row ristretto can keep the first.
		if held, ok := c.front.Get(o); ok && held != e {
			c.keep(o, e)
		}
		c.forget(o)
	}
	return true
}

// close saves what is pending and frees the cache. What is put after it is lost.
func (c *cache) close() {
	c.ending.Do(func() { close(c.stop) })
	<-c.stopped
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.front.Close()
}
