// Package tagcache keeps the robots tags of pages for answers without a page of their own.
package tagcache

import (
	"fmt"
	"net/http"
	"time"

	"robotsgate/internal/lifetime"
	"robotsgate/internal/memcache"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
)

// A Cache keeps the robots tags last seen for URLs, and what the heads of their pages said of their
// use, since an answer without a page of its own (304, HEAD, 206) does not lift them
// (draft-illyes-repext-03, caching of values). A URL has as many as its Vary selects. When it is full it drops the pages that
// are requested least. It is safe for concurrent use.
type Cache struct {
	pages *memcache.Cache[*Page]
}

// A Page is the robots tags of one complete answer, and the usage preferences of its page. It
// is immutable.
type Page struct {
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

// New returns an empty cache of about so many bytes.
func New(bytes int64) (*Cache, error) {
	pages, err := memcache.New[*Page](bytes, 300)
	if err != nil {
		return nil, fmt.Errorf("tagcache: %w", err)
	}
	return &Cache{pages: pages}, nil
}

// Close frees the cache. Nothing is found after it.
func (c *Cache) Close() { c.pages.Close() }

// Get returns the tags last seen at a URL, for the variant that an answer without a page belongs to. The variant is
// unknown, and nothing is found, if the request selects another one (RFC 9111, 4.1), or if Vary, the type, the
// ETag or the Last-Modified of the answer is not that of the variant (4.3.5). mediaType is the type of the answer; "": it need not have one.
func (c *Cache) Get(url string, request, answer http.Header, mediaType string) (*Page, bool) {
	p, ok := c.pages.Get(url)
	if ok && p.vary != nil && !p.vary.any {
		p, ok = c.pages.Get(p.vary.key(url, request))
	}
	if !ok || !p.vary.covers(varianceOf(answer)) {
		return nil, false
	}
	if mediaType != "" && mediaType != p.mediaType || differ(opaqueTag(answer), p.etag) || differ(answer.Get("Last-Modified"), p.modified) {
		return nil, false
	}
	return p, true
}

// differ reports whether two answers have different validators.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// Put keeps the tags of a complete answer with these headers, and its page's head.
func (c *Cache) Put(url string, request, answer http.Header, mediaType string, tags robotstag.Tags, head usage.Head) {
	now := time.Now()
	life := lifetime.Of(answer, now)
	if life < 0 {
		life = unstatedLifetime
	}
	p := &Page{
		Tags: tags, Head: head, At: now, Until: now.Add(life),
		vary: varianceOf(answer), mediaType: mediaType, etag: opaqueTag(answer),
		modified: answer.Get("Last-Modified"),
	}
	if p.vary != nil {
		of := &Page{vary: p.vary}
		c.pages.Put(url, of, of.cost(url))
		if p.vary.any {
			return
		}
		url = p.vary.key(url, request)
	}
	c.pages.Put(url, p, p.cost(url))
}

// Size returns what the cache holds.
func (c *Cache) Size() memcache.Size { return c.pages.Size() }

// cost estimates the memory that p holds, in bytes.
func (p *Page) cost(url string) int64 {
	n := 400 + len(url) + p.Head.Cost() + len(p.mediaType) + len(p.etag) + len(p.modified) + p.vary.cost()
	for _, r := range p.Tags.Rules {
		n += 96 + len(r.Scope)
	}
	for _, u := range p.Tags.Unknown {
		n += 16 + len(u)
	}
	return int64(n)
}
