package policy

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/dgraph-io/ristretto/v2"

	"robotsgate/policy/robotstag"
)

// TagCache keeps the robots tags last seen for URLs, since an answer without
// a page of its own (304, HEAD, 206) does not lift them
// (draft-illyes-repext-03, caching of values). What has not been asked for
// longest makes room when it is full.
type TagCache struct {
	front *ristretto.Cache[string, *CachedTags]
	most  int64 // bytes of recent

	settling sync.Mutex // held by the one that settles

	mu     sync.RWMutex
	recent map[string]*CachedTags // ristretto does not know of them yet
	given  map[string]*CachedTags // ristretto may not have them yet
	bytes  int64                  // of recent, at most
	later  *time.Timer            // settles what is recent
	closed bool                   // ristretto panics when used during its Close
}

const (
	// settleEvery is how long what is recent waits: to wait for ristretto after each page
	// would cost more than all else that is done about its tags.
	settleEvery = 100 * time.Millisecond
	// mostRecent bounds what waits, in bytes: some 16,000 pages, half of what ristretto
	// has room for in its queue. From a full queue it drops.
	mostRecent = 4 << 20
)

// CachedTags is what one complete answer said. It is immutable.
type CachedTags struct {
	Tags  robotstag.Tags // for every scope
	At    time.Time
	Until time.Time // while the answer is fresh (RFC 9111, 4.2)
}

// unstatedLife is how long an answer counts as fresh that does not say.
const unstatedLife = 24 * time.Hour

// NewTagCache returns an empty memory of about so many bytes.
func NewTagCache(bytes int64) (*TagCache, error) {
	most := min(bytes/8, mostRecent)
	front, err := ristretto.NewCache(&ristretto.Config[string, *CachedTags]{
		NumCounters: min(max(bytes/30, 10_000), 20_000_000), // ten for each page of 300 bytes
		MaxCost:     bytes - 2*most,                         // beside what is recent and what is given
		BufferItems: 64,
	})
	if err != nil {
		return nil, fmt.Errorf("tags.cache_bytes: %w", err)
	}
	r := &TagCache{front: front, most: most, recent: map[string]*CachedTags{}}
	r.later = time.AfterFunc(settleEvery, func() { r.settle(1) })
	return r, nil
}

// Get returns what was last seen at a URL.
func (r *TagCache) Get(url string) (*CachedTags, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s := r.recent[url]; s != nil {
		return s, true
	}
	if s := r.given[url]; s != nil {
		return s, true
	}
	if r.closed {
		return nil, false
	}
	return r.front.Get(url)
}

// Put remembers the tags of an answer with these headers.
func (r *TagCache) Put(url string, tags robotstag.Tags, h http.Header) {
	now := time.Now()
	life := lifetime(h, now)
	if life < 0 {
		life = unstatedLife
	}
	if r.put(url, &CachedTags{Tags: tags, At: now, Until: now.Add(life)}) {
		r.settle(r.most)
	}
}

// put reports whether there is too much that is recent.
func (r *TagCache) put(url string, s *CachedTags) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if len(r.recent) == 0 {
		r.later.Reset(settleEvery)
	}
	r.recent[url] = s
	r.bytes += s.cost(url)
	return r.bytes >= r.most
}

// settle hands what is recent to ristretto if it is at least so many bytes, and lets go
// of it once ristretto has it or has refused it with room in its queue, which is its way of
// saying that others are asked for more. Who comes meanwhile waits.
func (r *TagCache) settle(least int64) {
	r.settling.Lock()
	defer r.settling.Unlock()
	batch := r.give(least)
	if len(batch) == 0 {
		return // another has settled it
	}
	for url, s := range batch {
		r.front.Set(url, s, s.cost(url)) // once for each URL: of two in a row the first can stay
	}
	r.front.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given = nil
}

// give makes what is recent given, and returns it.
func (r *TagCache) give(least int64) map[string]*CachedTags {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.bytes < least {
		return nil
	}
	r.given, r.recent, r.bytes = r.recent, make(map[string]*CachedTags, len(r.recent)), 0
	return r.given
}

// Close frees the memory. What is put after it is lost.
func (r *TagCache) Close() {
	r.mu.Lock()
	closed := r.closed
	r.closed = true
	r.mu.Unlock()
	r.settling.Lock() // ristretto has what it was given
	defer r.settling.Unlock()
	if !closed {
		r.later.Stop()
		r.front.Close()
	}
}

// cost estimates the memory that s holds, in bytes.
func (s *CachedTags) cost(url string) int64 {
	n := 250 + len(url)
	for _, r := range s.Tags.Rules {
		n += 96 + len(r.Scope)
	}
	for _, u := range s.Tags.Unknown {
		n += 16 + len(u)
	}
	return int64(n)
}
