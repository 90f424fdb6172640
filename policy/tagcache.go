package policy

import (
	"fmt"
	"net/http"
	"time"

	"robotsgate/internal/memcache"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
)

// A TagCache keeps the robots tags last seen for URLs, and what the heads of their pages said of their
// use, since an answer without a page of its own (304, HEAD, 206) does not lift them
// (draft-illyes-repext-03, caching of values). When it is full it drops the pages that
// are requested least. It is safe for concurrent use.
type TagCache struct {
	pages *memcache.Cache[*CachedTags]
}

// CachedTags are the robots tags of one complete answer, and the usage preferences of its page. They
// are immutable.
type CachedTags struct {
	Tags  robotstag.Tags // for every scope
	Head  usage.Head
	At    time.Time
	Until time.Time // while the answer is fresh (RFC 9111, 4.2)
}

// unstatedLifetime is how long an answer counts as fresh that does not say.
const unstatedLifetime = 24 * time.Hour

// NewTagCache returns an empty cache of about so many bytes.
func NewTagCache(bytes int64) (*TagCache, error) {
	pages, err := memcache.New[*CachedTags](bytes, 300)
	if err != nil {
		return nil, fmt.Errorf("policy: tag cache: %w", err)
	}
	return &TagCache{pages: pages}, nil
}

// Close frees the cache. Nothing is found after it.
func (t *TagCache) Close() { t.pages.Close() }

// Get returns the tags last seen at a URL.
func (t *TagCache) Get(url string) (*CachedTags, bool) { return t.pages.Get(url) }

// Put keeps the tags of an answer with these headers, and its page's head.
func (t *TagCache) Put(url string, tags robotstag.Tags, head usage.Head, h http.Header) {
	now := time.Now()
	life := lifetime(h, now)
	if life < 0 {
		life = unstatedLifetime
	}
	c := &CachedTags{Tags: tags, Head: head, At: now, Until: now.Add(life)}
	t.pages.Put(url, c, c.cost(url))
}

// Size returns what the cache holds.
func (t *TagCache) Size() (s Size) {
	s.Entries, s.Bytes, s.Bound = t.pages.Usage()
	return s
}

// cost estimates the memory that c holds, in bytes.
func (c *CachedTags) cost(url string) int64 {
	n := 300 + len(url) + c.Head.Cost()
	for _, r := range c.Tags.Rules {
		n += 96 + len(r.Scope)
	}
	for _, u := range c.Tags.Unknown {
		n += 16 + len(u)
	}
	return int64(n)
}
