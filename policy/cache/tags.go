package cache

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
)

// Tags keeps the robots tags last seen for URLs, and what the heads of their pages said of their
// use, since an answer without a page of its own (304, HEAD, 206) does not lift them
// (draft-illyes-repext-03, caching of values). A URL has as many as its Vary selects. When it is full it drops the pages that
// were put and requested longest ago. It is safe for concurrent use.
type Tags struct {
	Await func() // what Get waits for: that all pages are restored; nil: nothing

	bound int64 // on the bytes of both generations

	mu         sync.Mutex
	young, old generation       // when young has half of the bytes it takes the place of old
	changed    map[string]*Page // for the next call of Kept, by key; nil: there was none
}

// A generation has pages by key.
type generation struct {
	pages map[string]*Page
	bytes int64
}

// A Page is the robots tags of one complete answer, and the usage preferences of its page. It
// is immutable.
type Page struct {
	Key   string         // the URL, and the variant if it has several
	Tags  robotstag.Tags // for every scope
	Head  usage.Head
	At    time.Time
	Until time.Time // while the answer is fresh (RFC 9111, 4.2)

	Vary      *variance `json:",omitempty"` // of the answer
	MediaType string
	ETag      string // without a mark of weakness; "": the answer has none
	Modified  string // its Last-Modified
}

// unstatedLifetime is how long an answer counts as fresh that does not say.
const unstatedLifetime = 24 * time.Hour

// NewTags returns an empty cache of about so many bytes.
func NewTags(bytes int64) *Tags {
	return &Tags{bound: bytes, young: generation{pages: map[string]*Page{}}}
}

// Get returns the tags last seen at a URL, for the variant that an answer without a page belongs to. The variant is
// unknown, and nothing is found, if the request selects another one (RFC 9111, 4.1), or if Vary, the type, the
// ETag or the Last-Modified of the answer is not that of the variant (4.3.5). mediaType is the type of the answer; "": it need not have one.
func (c *Tags) Get(url string, request, answer http.Header, mediaType string) (*Page, bool) {
	if c.Await != nil {
		c.Await()
	}
	p := c.get(url)
	if p != nil && p.Vary != nil && !p.Vary.Any {
		p = c.get(p.Vary.key(url, request))
	}
	if p == nil || !p.Vary.covers(varianceOf(answer)) {
		return nil, false
	}
	if mediaType != "" && mediaType != p.MediaType || differ(opaqueTag(answer), p.ETag) || differ(answer.Get("Last-Modified"), p.Modified) {
		return nil, false
	}
	return p, true
}

// differ reports whether two answers have different validators.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// Put keeps the tags of a complete answer with these headers, and its page's head.
func (c *Tags) Put(url string, request, answer http.Header, mediaType string, tags robotstag.Tags, head usage.Head) {
	now := time.Now()
	life := Lifetime(answer, now)
	if life < 0 {
		life = unstatedLifetime
	}
	p := &Page{
		Key: url, Tags: tags, Head: head, At: now, Until: now.Add(life),
		Vary: varianceOf(answer), MediaType: mediaType, ETag: opaqueTag(answer),
		Modified: answer.Get("Last-Modified"),
	}
	if p.Vary != nil {
		c.put(&Page{Key: url, Vary: p.Vary})
		if p.Vary.Any {
			return
		}
		p.Key = p.Vary.key(url, request)
	}
	c.put(p)
}

// get returns the page of a key, nil if there is none.
func (c *Tags) get(key string) *Page {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.young.pages[key]
	if p == nil {
		if p = c.old.pages[key]; p != nil {
			c.add(p)
		}
	}
	return p
}

// put adds a page to the cache, and to what Kept returns.
func (c *Tags) put(p *Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(p)
	if c.changed != nil {
		c.changed[p.Key] = p
	}
}

// add adds a page to the young generation. The caller holds mu.
func (c *Tags) add(p *Page) {
	for _, g := range []*generation{&c.young, &c.old} {
		if before := g.pages[p.Key]; before != nil {
			g.bytes -= before.cost()
			delete(g.pages, p.Key)
		}
	}
	c.young.pages[p.Key] = p
	if c.young.bytes += p.cost(); c.young.bytes > c.bound/2 {
		c.young, c.old = generation{pages: map[string]*Page{}}, c.young
	}
}

// Kept returns the pages that were put after the last call, or all. The cache notes pages for it from the first call on.
func (c *Tags) Kept(all bool) []*Page {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.changed
	c.changed = map[string]*Page{}
	if all {
		return slices.AppendSeq(slices.Collect(maps.Values(c.old.pages)), maps.Values(c.young.pages))
	}
	return slices.Collect(maps.Values(changed))
}

// Restore adds a page that Kept has returned in an earlier process, unless another one was put since the last call of
// Kept.
func (c *Tags) Restore(p *Page) {
	if p == nil || p.Key == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, newer := c.changed[p.Key]; !newer {
		c.add(p)
	}
}

// A Size is what a cache holds, and the bound on its bytes.
type Size struct {
	Entries      int
	Bytes, Bound int64
}

// Size returns what the cache holds.
func (c *Tags) Size() Size {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Size{len(c.young.pages) + len(c.old.pages), c.young.bytes + c.old.bytes, c.bound}
}

// cost estimates the memory that p holds, in bytes.
func (p *Page) cost() int64 {
	n := 400 + len(p.Key) + p.Head.Cost() + len(p.MediaType) + len(p.ETag) + len(p.Modified) + p.Vary.cost()
	for _, r := range p.Tags.Rules {
		n += 96 + len(r.Scope)
	}
	for _, u := range p.Tags.Unknown {
		n += 16 + len(u)
	}
	return int64(n)
}
