package policy

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/dgraph-io/ristretto/v2"

	"robotsgate/policy/robotstag"
)

// Remembered keeps the robots tags last seen for URLs, since an answer without
// a page of its own (304, HEAD, 206) does not lift them
// (draft-illyes-repext-03, caching of values). What has not been asked for
// longest makes room when it is full.
type Remembered struct {
	front *ristretto.Cache[string, *Seen]

	mu       sync.RWMutex
	recent   map[string]*Seen // ristretto may not have them yet
	bytes    int64            // of recent, at most
	later    *time.Timer      // to settle them; nil: none have come yet
	settling bool
	settled  sync.WaitGroup
	closed   bool // ristretto panics when used during its Close
}

const (
	// settleEvery is how long ristretto is not asked for: to wait for it after each page
	// would cost more than all else that is done about its tags.
	settleEvery = 100 * time.Millisecond
	// mostRecent bounds what comes meanwhile, in bytes.
	mostRecent = 1 << 20
)

// Seen is what one complete answer said. It is immutable.
type Seen struct {
	Tags  robotstag.Tags // for every scope
	At    time.Time
	Until time.Time // while the answer is fresh (RFC 9111, 4.2)
}

// unstatedLife is how long an answer counts as fresh that does not say.
const unstatedLife = 24 * time.Hour

// NewRemembered returns an empty memory of about so many bytes.
func NewRemembered(bytes int64) (*Remembered, error) {
	front, err := ristretto.NewCache(&ristretto.Config[string, *Seen]{
		NumCounters: min(max(bytes/30, 10_000), 20_000_000), // ten for each page of 300 bytes
		MaxCost:     bytes,
		BufferItems: 64,
	})
	if err != nil {
		return nil, fmt.Errorf("tags.cache_bytes: %w", err)
	}
	return &Remembered{front: front, recent: map[string]*Seen{}}, nil
}

// Get returns what was last seen at a URL.
func (r *Remembered) Get(url string) (*Seen, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s := r.recent[url]; s != nil {
		return s, true
	}
	if r.closed {
		return nil, false
	}
	return r.front.Get(url)
}

// Put remembers the tags of an answer with these headers.
func (r *Remembered) Put(url string, tags robotstag.Tags, h http.Header) {
	now := time.Now()
	life := lifetime(h, now)
	if life < 0 {
		life = unstatedLife
	}
	s := &Seen{Tags: tags, At: now, Until: now.Add(life)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if r.bytes += s.cost(url); len(r.recent) == 0 && !r.settling {
		r.settleLater()
	}
	r.recent[url] = s // of many in a row ristretto gets the last
	if r.bytes >= mostRecent {
		r.settleNow()
	}
}

// settleLater sets the timer. The caller has the lock.
func (r *Remembered) settleLater() {
	if r.later != nil {
		r.later.Reset(settleEvery)
		return
	}
	r.later = time.AfterFunc(settleEvery, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settleNow()
	})
}

// settleNow begins to settle what there is. The caller has the lock.
func (r *Remembered) settleNow() {
	if !r.settling && !r.closed {
		r.settling = true
		r.settled.Go(r.settle)
	}
}

// settle lets go of what is recent once ristretto has it, or has refused it
// with its queue empty, which is its way of saying that there is no room.
func (r *Remembered) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for again := true; again && !r.closed; again = r.bytes >= mostRecent {
		r.bytes = 0
		batch := maps.Clone(r.recent)
		for url, s := range batch {
			// A full queue drops a Set, and of two in a row the first can stay.
			if held, ok := r.front.Get(url); !ok || held != s {
				r.front.Set(url, s, s.cost(url))
			}
		}
		r.mu.Unlock()
		r.front.Wait()
		r.mu.Lock()
		for url, s := range batch {
			if r.recent[url] == s {
				delete(r.recent, url)
			}
		}
	}
	if r.settling = false; len(r.recent) > 0 {
		r.settleLater() // they came meanwhile
	}
}

// Close frees the memory. What is put after it is lost.
func (r *Remembered) Close() {
	r.mu.Lock()
	closed := r.closed
	r.closed = true
	r.mu.Unlock()
	r.settled.Wait()
	if !closed {
		r.front.Close()
	}
}

// cost estimates the memory that s holds, in bytes.
func (s *Seen) cost(url string) int64 {
	n := 250 + len(url)
	for _, r := range s.Tags.Rules {
		n += 96 + len(r.Scope)
	}
	for _, u := range s.Tags.Unknown {
		n += 16 + len(u)
	}
	return int64(n)
}
