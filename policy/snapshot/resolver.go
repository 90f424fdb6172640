package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"robotsgate/policy/cache"
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
	store        Store
	storeTimeout time.Duration // of one Load
	maxBytes     int64         // of a file
	entries      *cache.Cache[*entry]
	unsaved      unsaved
	updates      singleflight.Group // by key
	large        chan struct{}      // see newLarge
	log          *slog.Logger

	ctx     context.Context // of fetches: they serve all crawlers, not only the first that asked
	cancel  context.CancelFunc
	running sync.WaitGroup // updates, and tries to save again; none is started when ctx has ended

	mu sync.Mutex // held to replace an entry by another that depends on it
}

// begin takes a place in running, unless the resolver is closed.
func (s *shared) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.running.Add(1)
	return true
}

// New returns a resolver that works until Close.
func New(c Config) (*Resolver, error) {
	c = c.complete()
	entries, err := cache.New[*entry](c.Settings.CacheBytes)
	if err != nil {
		return nil, fmt.Errorf("snapshot: Settings.CacheBytes: %w", err)
	}
	s := &shared{
		store: c.Store, storeTimeout: c.Settings.Timeout, maxBytes: c.Settings.MaxBytes, entries: entries,
		unsaved: unsaved{entries: map[string]*entry{}, maxBytes: max(c.Settings.CacheBytes/2, minUnsaved)},
		large:   newLarge(int(c.Settings.MaxBytes)), log: c.Log,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s.resolver(c), nil
}

// Reconfigured returns a resolver that reads answers as c says and shares with r all sets and
// the fetches that are under way. Both may be used at the same time. The Store, the Log,
// Settings.MaxBytes and Settings.CacheBytes of c are ignored: those of [New] hold. Closing one
// closes both.
func (r *Resolver) Reconfigured(c Config) *Resolver { return r.shared.resolver(c.complete()) }

func (s *shared) resolver(c Config) *Resolver {
	c.Settings.MaxBytes = s.maxBytes // at which all compiled files were cut
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

// Close ends background work, and tries to save what could not be saved yet.
func (r *Resolver) Close() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.running.Wait() // a RoundTripper returns when its context ends
	r.entries.Close()
}

// Scope returns the scope of a query, with its asker: what an origin can tell crawlers apart by, which is the User-Agent
// of the fetch, and the key that signs it.
func (r *Resolver) Scope(q Query) Scope { return r.question(q).Scope }

// Known returns the set that a query is about, without a fetch.
func (r *Resolver) Known(ctx context.Context, q Query) (set Set, ok bool) {
	known := r.find(ctx, r.question(q).key)
	if known == nil || known.Empty() {
		return Set{}, false
	}
	return known.Set, true
}
