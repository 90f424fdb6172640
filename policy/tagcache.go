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
// (draft-illyes-repext-03, caching of values). A URL has as many as its Vary selects. When it is full it drops the pages that
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

	vary      *variance // of the answer
	mediaType string
	etag      string // without a mark of weakness; "": the answer has none
	modified  string // its Last-Modified
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

// Get returns the tags last seen at a URL, for the variant that an answer without a page belongs to. The variant is
// unknown, and nothing is found, if the request selects another one (RFC 9111, 4.1), or if Vary, the type, the
// ETag or the Last-Modified of the answer is not that of the variant (4.3.5). mediaType is the type of the answer; "": it need not have one.
func (t *TagCache) Get(url string, request, answer http.Header, mediaType string) (*CachedTags, bool) {
	c, ok := t.pages.Get(url)
	if ok && c.vary != nil && !c.vary.any {
		c, ok = t.pages.Get(c.vary.key(url, request))
	}
	if !ok || !c.vary.covers(varianceOf(answer)) {
		return nil, false
	}
	if mediaType != "" && mediaType != c.mediaType || differ(opaqueTag(answer), c.etag) || differ(answer.Get("Last-Modified"), c.modified) {
		return nil, false
	}
	return c, true
}

// differ reports whether two answers have different validators.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// Put keeps the tags of a complete answer with these headers, and its page's head.
func (t *TagCache) Put(url string, request, answer http.Header, mediaType string, tags robotstag.Tags, head usage.Head) {
	now := time.Now()
	life := lifetime(answer, now)
	if life < 0 {
		life = unstatedLifetime
	}
	c := &CachedTags{
		Tags: tags, Head: head, At: now, Until: now.Add(life),
		vary: varianceOf(answer), mediaType: mediaType, etag: opaqueTag(answer),
		modified: answer.Get("Last-Modified"),
	}
	if c.vary != nil {
		of := &CachedTags{vary: c.vary}
		t.pages.Put(url, of, of.cost(url))
		if c.vary.any {
			return
		}
		url = c.vary.key(url, request)
	}
	t.pages.Put(url, c, c.cost(url))
}

// Size returns what the cache holds.
func (t *TagCache) Size() (s Size) {
	s.Entries, s.Bytes, s.Bound = t.pages.Usage()
	return s
}

// cost estimates the memory that c holds, in bytes.
func (c *CachedTags) cost(url string) int64 {
	n := 400 + len(url) + c.Head.Cost() + len(c.mediaType) + len(c.etag) + len(c.modified) + c.vary.cost()
	for _, r := range c.Tags.Rules {
		n += 96 + len(r.Scope)
	}
	for _, u := range c.Tags.Unknown {
		n += 16 + len(u)
	}
	return int64(n)
}
