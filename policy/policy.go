// Package policy decides whether a crawler may fetch a URL: by the operator's
// overrides, then by the origin's robots.txt (RFC 9309), which it fetches,
// keeps and renews.
//
// Make an [Engine] with [New], from a [Config] with [DefaultRobots] in it. Make
// the [Target] of each request with [ParseURL] or [ParseTarget], and call
// [Engine.Decide] before the request is sent. The [Decision] says whether it may be
// sent, and why. [Robots.Judge] decides by a robots.txt at hand, without an Engine.
//
// To decide you need [Engine], [Config], [Crawler], [Override], [Target], [Request] and [Decision].
// [Snapshot], [Record], [Scope] and [Resolution] are for stores; [PastRequest] is for the audit log,
// and [Evidence] for decisions in JSON.
//
// The package opens no sockets of its own: fetches go through the RoundTripper in
// the Config, and records that outlive the process go to the [Store].
package policy

// Where to change what.
//
//	how a product token is found:
//		token.go
//	what a status of robots.txt means, such as 429:
//		freshness.go
//	one fetch and its redirects:
//		fetch.go; what is kept of it: result.go
//	when there is a fetch:
//		schedule.go
//	which files are fetched beside robots.txt:
//		file.go for what is parsed, scope.go for its place in stores; tdmrepFor in preference.go is a model of its
//		use
//	what the use of content refuses before a request is sent:
//		preference.go, and a story in testdata/origins/usage.txtar
//	what an override is for, and what it does:
//		override.go, and a case of allowlist_test.go; mistakes and warnings: overridecheck.go
//	a member of the JSON of refusals and of check --json:
//		evidence.go, and docs/annotations.md

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// A Config is what an Engine decides by. Only Robots is required.
type Config struct {
	Crawlers  Crawlers
	Overrides []Override // the first that applies decides, before robots.txt
	Robots    Robots
	Usage     Usage
	Agent     string            // User-Agent of fetches for crawlers without product tokens; empty: robotsgate/0
	Transport http.RoundTripper // for fetching robots.txt, with any limits on destinations; nil: http.DefaultTransport
	Store     Store             // nil: records are kept in memory only
	Shared    bool              // several gates share the Store: records note what [Merge] needs
	Log       *slog.Logger      // nil: none
	OnFetch   func(Fetch)       // called after every fetch; may be nil
}

// complete returns c with defaults for the fields that were left out.
func (c Config) complete() Config {
	c.Agent = cmp.Or(c.Agent, "robotsgate/0")
	c.Transport = cmp.Or(c.Transport, http.DefaultTransport)
	c.Store = cmp.Or[Store](c.Store, noStore{})
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Usage.memo = new(usage.Memo)
	c.Overrides = Prepared(c.Overrides)
	c.Crawlers.Default = cmp.Or(c.Crawlers.Default, &Crawler{Name: "default"})
	if c.OnFetch == nil {
		c.OnFetch = func(Fetch) {}
	}
	for _, k := range c.Crawlers.Known {
		if !k.configured { // else another engine may be reading it
			k.configured = true
		}
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

// A Request is one request to decide about.
type Request struct {
	Target    Target
	Method    string   // as sent; empty: GET
	Crawler   *Crawler // nil: the default one
	UserAgent string   // the header as sent
	// Destination checks where the request would be sent to; nil: it may be sent anywhere. It may look
	// up the name, so it is not called for a request that an override denies: a name may carry data.
	Destination interface{ Check(host, port string) error }

	whole bool // about the whole host, of which Target is the root
}

// An Engine decides. It is safe for concurrent use.
type Engine struct {
	config  Config  // with defaults for the fields that were left out
	robots  *Robots // those of config
	tdmrep  *Robots // for reading answers to the request for tdmrep.json
	fetcher fetcher
	wrapped map[*Crawler]http.RoundTripper // of crawlers with Wrap
	checked sync.Map                       // names of crawlers, see checkUserAgent
	*shared
}

// shared is what the engines of several settings have in common, see [Engine.Reconfigured].
type shared struct {
	cache *cache
	large chan struct{} // see newLarge
	slow  *slowLimit
	log   *slog.Logger

	ctx     context.Context // of fetches: they serve all crawlers, not only the first that asked
	cancel  context.CancelFunc
	running sync.WaitGroup // fetches and renewals; none is started when ctx has ended

	mu     sync.Mutex
	scopes map[string]*scopeFetches // by the key of the scope
}

// New returns an engine that works until Close. It is an error if c.Robots lacks a
// value that must be positive.
func New(c Config) (*Engine, error) {
	if err := c.Robots.check(); err != nil {
		return nil, err
	}
	c = c.complete()
	cache, err := newCache(c.Robots.CacheBytes, c.Robots.MaxBytes, c.Store, c.Log)
	if err != nil {
		return nil, err
	}
	s := &shared{
		cache: cache, large: newLarge(c.Robots.MaxBytes), slow: newSlowLimit(), log: c.Log, scopes: map[string]*scopeFetches{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s.engine(c), nil
}

// Reconfigured returns an engine that decides as c says and shares with e all records and
// the fetches that are under way. Both may be used at the same time. The Store, the Log,
// Robots.MaxBytes and Robots.CacheBytes of c are ignored: those of [New] hold. Closing one
// closes both.
func (e *Engine) Reconfigured(c Config) *Engine { return e.shared.engine(c.complete()) }

func (s *shared) engine(c Config) *Engine {
	c.Robots.reserve(c.Crawlers)
	c.Robots.MaxBytes = s.cache.maxBytes // at which all compiled files were cut
	e := &Engine{config: c, shared: s}
	e.robots, e.tdmrep = &e.config.Robots, e.config.Robots.ForTDMRep()
	e.fetcher = fetcher{c.Transport, e.robots, s.large}
	e.wrapped = c.Crawlers.Wrapped(c.Transport)
	return e
}

// settings returns the settings by which answers about the file of a scope are read.
func (e *Engine) settings(s Scope) *Robots {
	if s.TDMRep {
		return e.tdmrep
	}
	return e.robots
}

// Close ends background work and saves the records that are not saved yet.
func (e *Engine) Close() {
	e.mu.Lock()
	e.cancel()
	e.mu.Unlock()
	e.running.Wait() // a RoundTripper returns when its context ends
	e.cache.close()
}

// Settle waits until the answers by which decisions were made so far are in the Store, the Store fails, or ctx ends. A
// record of a decision that is written afterwards then names no evidence that a crash could take away.
func (e *Engine) Settle(ctx context.Context) { e.cache.unsaved.settle(ctx) }

// Crawlers returns the configured crawlers.
func (e *Engine) Crawlers() Crawlers { return e.config.Crawlers }

// Usage returns what is done about usage preferences.
func (e *Engine) Usage() Usage { return e.config.Usage }

// UnreachableStatus returns the status of a refusal because robots.txt is unreachable.
func (e *Engine) UnreachableStatus() int {
	return cmp.Or(e.robots.UnreachableStatus, http.StatusForbidden)
}

// Decide says whether the request may be sent. It fetches robots.txt if needed. A fetch takes
// Robots.Timeout at most, and a request waits for two fetches at most: an answer to another
// crawler may bind that crawler only (401, 403, 429, 5xx, Vary). After that the origin counts as
// unreachable. With Usage.TDMRep, a request that robots.txt allows waits for tdmrep.json too, for
// Robots.Timeout at most.
//
// An error means that there is no decision and the request must not be sent: that of
// r.Destination, ErrProhibited,
// ErrNoHost, ErrBusy, ErrExhausted, ErrCostly, the context's own, or that the engine is
// closed. Call [Engine.CheckPath] first: Decide does not refuse ambiguous paths.
func (e *Engine) Decide(ctx context.Context, r Request) (Decision, error) {
	r.Crawler = cmp.Or(r.Crawler, e.config.Crawlers.Default)
	e.checkUserAgent(r)
	readings := e.robots.Readings
	d, decided := Overridden(e.config.Overrides, readings, r, time.Now())
	if r.Destination != nil && !(decided && d.Denied()) {
		host, port, _ := net.SplitHostPort(r.Target.Address())
		if err := r.Destination.Check(host, port); err != nil {
			return Decision{}, err
		}
	}
	if decided {
		if d.Allow && len(r.Crawler.Purposes) > 0 {
			err := e.stateBeside(ctx, r, &d)
			return d, err
		}
		return d, nil
	}
	res, err := e.resolve(ctx, e.obeyed(&r, d.Tokens))
	if err != nil {
		return Decision{}, err
	}
	d.Robots, d.URL = &res, r.Target.robotsURL()
	if !d.judgeWithin(robotstxt.Quick(), r, readings) {
		if err := e.judgeSlowly(ctx, &d, r); err != nil {
			return Decision{}, err
		}
	}
	if e.config.Usage.TDMRep {
		if d.TDMRep, err = e.tdmrepFor(ctx, r, &d); err != nil {
			return Decision{}, err
		}
	}
	err = e.config.Usage.judge(&d, r, readings, func() (func(), error) { return e.slow.release, e.slow.acquire(ctx) })
	if err != nil {
		return Decision{}, err
	}
	return d, nil
}

// judgeSlowly decides by the evidence in d.Robots with as much effort as it takes.
func (e *Engine) judgeSlowly(ctx context.Context, d *Decision, r Request) error {
	if err := e.slow.acquire(ctx); err != nil {
		return err
	}
	defer e.slow.release()
	d.judgeWithin(robotstxt.Thorough(), r, e.robots.Readings)
	return nil
}

// DecideHost decides about all of an origin at once, for tunnels with requests
// that can't be seen. It denies only if the rule for "/" does and the group obeyed
// allows no other path. An override allows a host, or leaves it to robots.txt, only if it is for
// all paths and methods; one for some methods denies it.
func (e *Engine) DecideHost(ctx context.Context, r Request) (Decision, error) {
	r.Target.Path, r.whole = "/", true
	return e.Decide(ctx, r)
}

// CheckPath reports a target with a path that must not be sent, since servers resolve it in
// different ways: the error is ErrHiddenDots.
func (e *Engine) CheckPath(t Target) error {
	if e.robots.Readings != Literal && robotstxt.HidesDotSegment(t.Path) {
		return ErrHiddenDots
	}
	return nil
}

// NamesMethods reports whether an override is for some methods only.
func (e *Engine) NamesMethods() bool {
	return slices.ContainsFunc(e.config.Overrides, func(o Override) bool { return len(o.Methods) > 0 })
}

// checkUserAgent warns at a crawler's first request if its User-Agent lacks its product token: sites
// that name the token in robots.txt, and find another name in their logs, are misled (RFC 9309, 2.2.1).
func (e *Engine) checkUserAgent(r Request) {
	if len(r.Crawler.Tokens) == 0 || r.UserAgent == "" {
		return
	}
	if _, checked := e.checked.LoadOrStore(r.Crawler.Name, true); checked {
		return
	}
	agent := strings.ToLower(r.UserAgent)
	if !slices.ContainsFunc(r.Crawler.Tokens, func(token string) bool { return strings.Contains(agent, strings.ToLower(token)) }) {
		e.log.Warn("the crawler's User-Agent does not have the product token that the crawler obeys: sites that name the token in robots.txt can't recognize the crawler",
			"crawler", r.Crawler.Name, "product_tokens", r.Crawler.Tokens, "user_agent", r.UserAgent)
	}
}
