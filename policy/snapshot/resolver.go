package snapshot

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"robotsgate/internal/memcache"
)

// A Config is what a Resolver works with. Only Settings is required.
type Config struct {
	Settings  Settings
	Transport http.RoundTripper // for fetches, with any limits on destinations; nil: http.DefaultTransport
	Store     Store             // nil: sets are kept in memory only
	Shared    bool              // several gates share the Store
	Log       *slog.Logger      // nil: none
	OnFetch   func(Fetch)       // called after every fetch; may be nil
}

// complete returns c with defaults for the fields that were left out.
func (c Config) complete() Config {
	c.Transport = cmp.Or(c.Transport, http.DefaultTransport)
	c.Store = cmp.Or[Store](c.Store, noStore{})
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.OnFetch == nil {
		c.OnFetch = func(Fetch) {}
	}
	return c
}

// A Fetch reports one fetch of an origin's robots.txt, or of its tdmrep.json.
type Fetch struct {
	Origin  string
	TDMRep  bool
	Outcome string // a State, or "error" if no request could be sent
	Took    time.Duration
}

// A Query asks what the file of an origin means to a crawler.
type Query struct {
	Scope     Scope             // without Asker
	UserAgent string            // of a fetch, unless Settings.UserAgent is set
	KeyID     string            // of the key that signs the fetch; empty: it is not signed
	Transport http.RoundTripper // for a fetch; nil: that of the Config
}

// A Resolver says what the files of origins mean to crawlers. It fetches the files, keeps the answers in memory and
// in its [Store], and renews them. It is safe for concurrent use.
type Resolver struct {
	config   Config    // with defaults for the fields that were left out
	settings *Settings // those of config
	tdmrep   *Settings // for reading answers to the request for tdmrep.json
	*shared
}

// shared is what the resolvers of several settings have in common, see [Resolver.Reconfigured].
type shared struct {
	cache *cache
	large chan struct{} // see newLarge
	log   *slog.Logger

	ctx     context.Context // of fetches: they serve all crawlers, not only the first that asked
	cancel  context.CancelFunc
	running sync.WaitGroup // fetches and renewals; none is started when ctx has ended

	mu     sync.Mutex
	scopes map[string]*scopeFetches // by the key of the scope
}

// New returns a resolver that works until Close. It is an error if c.Settings lacks a
// value that must be positive.
func New(c Config) (*Resolver, error) {
	if err := c.Settings.check(); err != nil {
		return nil, err
	}
	c = c.complete()
	cache, err := newCache(c.Settings.CacheBytes, c.Settings.MaxBytes, c.Store, c.Log)
	if err != nil {
		return nil, err
	}
	s := &shared{cache: cache, large: newLarge(c.Settings.MaxBytes), log: c.Log, scopes: map[string]*scopeFetches{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s.resolver(c), nil
}

// Reconfigured returns a resolver that reads answers as c says and shares with r all sets and
// the fetches that are under way. Both may be used at the same time. The Store, the Log,
// Settings.MaxBytes and Settings.CacheBytes of c are ignored: those of [New] hold. Closing one
// closes both.
func (r *Resolver) Reconfigured(c Config) *Resolver { return r.shared.resolver(c.complete()) }

func (s *shared) resolver(c Config) *Resolver {
	c.Settings.MaxBytes = s.cache.maxBytes // at which all compiled files were cut
	r := &Resolver{config: c, shared: s}
	r.settings, r.tdmrep = &r.config.Settings, c.Settings.forTDMRep()
	return r
}

// settingsFor returns the settings by which answers about the file of a scope are read.
func (r *Resolver) settingsFor(of Scope) *Settings {
	if of.TDMRep {
		return r.tdmrep
	}
	return r.settings
}

// Close ends background work and saves the sets that are not saved yet.
func (r *Resolver) Close() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.running.Wait() // a RoundTripper returns when its context ends
	r.cache.close()
}

// Settle waits until the answers that have been returned so far are in the Store, the Store fails, or ctx ends. A
// decision that is recorded afterwards then names no evidence that a crash could take away.
func (r *Resolver) Settle(ctx context.Context) { r.cache.unsaved.settle(ctx) }

// SaveError returns why snapshots can't be saved, so that they stay in memory; nil: they can.
func (r *Resolver) SaveError() error { return r.cache.unsaved.failure() }

// Scope returns the scope of a query, with its asker: what an origin can tell crawlers apart by, which is the User-Agent
// of the fetch, and the key that signs it.
func (r *Resolver) Scope(q Query) Scope { return r.question(q).Scope }

// Known returns the set that a query is about, without a fetch.
func (r *Resolver) Known(ctx context.Context, q Query) (set Set, ok bool) {
	known := r.cache.find(ctx, r.question(q).key)
	if known == nil || known.Empty() {
		return Set{}, false
	}
	return known.Set, true
}

// Origins returns origins that the [Store] has, as its method of that name does. The store has an
// origin soon after the first answer to a fetch.
func (r *Resolver) Origins(ctx context.Context, contains, from string, limit int) (origins []string, next string, err error) {
	return r.cache.store.Origins(ctx, contains, from, limit)
}

// Outages returns origins with a robots.txt that can't be fetched, the last that was tried
// first. Only the last 50 are kept.
func (r *Resolver) Outages() []Outage { return r.cache.outages.list(r.settings, time.Now()) }

// Forbidden returns the askers that are answered 401 or 403 for a robots.txt of which there is a copy, the last that
// was fetched first. Only the last 50 are kept.
func (r *Resolver) Forbidden() []Forbidden { return r.cache.outages.forbidden(r.settings, time.Now()) }

// Cached returns the size of the compiled rules in memory.
func (r *Resolver) Cached() memcache.Size { return r.cache.entries.Size() }
