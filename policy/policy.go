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

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"robotsgate/policy/robotstxt"
)

// A Config is what an Engine decides by. Only Robots is required.
type Config struct {
	Crawlers  Crawlers
	Overrides []Override // the first that applies decides, before robots.txt
	Robots    Robots
	Transport http.RoundTripper // for fetching robots.txt, with any limits on destinations; nil: http.DefaultTransport
	Store     Store             // nil: records are kept in memory only
	Hints     Hints             // for the errors of fetches
	Log       *slog.Logger      // nil: none
	OnFetch   func(Fetch)       // called after every fetch; may be nil
}

// complete returns c with defaults for the fields that were left out.
func (c Config) complete() Config {
	c.Transport = cmp.Or(c.Transport, http.DefaultTransport)
	c.Store = cmp.Or[Store](c.Store, noStore{})
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Crawlers.Default = cmp.Or(c.Crawlers.Default, &Crawler{Name: "default"})
	if c.OnFetch == nil {
		c.OnFetch = func(Fetch) {}
	}
	c.Crawlers.mark()
	return c
}

// A Fetch reports one fetch of an origin's robots.txt.
type Fetch struct {
	Origin  string
	Outcome string // a State, or "error" if no request could be sent
	Took    time.Duration
}

// A Request is one request to decide about.
type Request struct {
	Target    Target
	Crawler   *Crawler // nil: the default one
	UserAgent string   // the header as sent

	whole bool // about the whole host, of which Target is the root
}

// An Engine decides. It is safe for concurrent use.
type Engine struct {
	crawlers  Crawlers
	overrides []Override
	resolver  *resolver
	log       *slog.Logger
	checked   sync.Map // names of crawlers, see checkUserAgent
}

// New returns an engine that works until Close. It is an error if c.Robots lacks a
// value that must be positive.
func New(c Config) (*Engine, error) {
	if err := c.Robots.check(); err != nil {
		return nil, err
	}
	c = c.complete()
	r, err := newResolver(c)
	if err != nil {
		return nil, err
	}
	return &Engine{crawlers: c.Crawlers, overrides: c.Overrides, resolver: r, log: c.Log}, nil
}

// Reconfigured returns an engine that decides as c says and shares with e all records and
// the fetches that are under way. Both may be used at the same time. The Store, the Log,
// Robots.MaxBytes and Robots.CacheBytes of c are ignored: those of [New] hold. Closing one
// closes both.
func (e *Engine) Reconfigured(c Config) *Engine {
	c = c.complete()
	return &Engine{crawlers: c.Crawlers, overrides: c.Overrides, resolver: e.resolver.shared.resolver(c), log: e.log}
}

// Close ends background work and saves the records that are not saved yet.
func (e *Engine) Close() { e.resolver.close() }

// Crawlers returns the configured crawlers.
func (e *Engine) Crawlers() Crawlers { return e.crawlers }

// Decide says whether the request may be sent. It fetches robots.txt if needed. A fetch takes
// Robots.Timeout at most, and a request waits for two fetches at most: an answer to another
// crawler may bind that crawler only (401, 403, 429, 5xx, Vary). After that the origin counts as
// unreachable.
//
// An error means that there is no decision and the request must not be sent: ErrProhibited,
// ErrNoHost, ErrBusy, ErrExhausted, ErrCostly, the context's own, or that the engine is
// closed. Call [Engine.CheckPath] first: Decide does not refuse ambiguous paths.
func (e *Engine) Decide(ctx context.Context, r Request) (Decision, error) {
	e.setCrawler(&r)
	e.checkUserAgent(r)
	readings := e.resolver.robots.Readings
	d, decided := Overridden(e.overrides, readings, r, time.Now())
	if decided {
		return d, nil
	}
	res, err := e.resolver.resolve(ctx, r.question(d.Tokens))
	if err != nil {
		return Decision{}, err
	}
	d.Robots, d.URL = &res, r.Target.robotsURL()
	if d.judgeWithin(robotstxt.Quick(), r.Target, readings) {
		return d, nil
	}
	if err := e.resolver.slow.acquire(ctx); err != nil {
		return Decision{}, err
	}
	defer e.resolver.slow.release()
	d.judgeWithin(robotstxt.Thorough(), r.Target, readings)
	return d, nil
}

// DecideHost decides about all of an origin at once, for tunnels with requests
// that can't be seen. It denies only if the rule for "/" does and the group obeyed
// allows no other path. An override allows a host only if it is for all paths.
func (e *Engine) DecideHost(ctx context.Context, r Request) (Decision, error) {
	r.Target.Path, r.whole = "/", true
	d, err := e.Decide(ctx, r)
	if err == nil {
		d.forHost()
	}
	return d, err
}

// CheckPath reports a target with a path that must not be sent, since servers resolve it in
// different ways: the error is ErrHiddenDots.
func (e *Engine) CheckPath(t Target) error {
	if e.resolver.robots.Readings != Literal && robotstxt.HidesDotSegment(t.Path) {
		return ErrHiddenDots
	}
	return nil
}

// Refresh fetches an origin's robots.txt now, whatever is known of it.
func (e *Engine) Refresh(ctx context.Context, r Request) (Resolution, error) {
	e.setCrawler(&r)
	return e.resolver.refresh(ctx, r.question(r.Crawler.Obeys(r.UserAgent)))
}

// Peek returns what an origin's robots.txt means now to the crawler of a request, as far as it is
// known, without a fetch. due says that a request would start one. ok is false if nothing is
// known that is for this crawler.
func (e *Engine) Peek(ctx context.Context, r Request) (res Resolution, due, ok bool) {
	e.setCrawler(&r)
	return e.resolver.peek(ctx, r.question(r.Crawler.Obeys(r.UserAgent)))
}

// Known returns the record of a scope, without a fetch.
func (e *Engine) Known(ctx context.Context, s Scope) (rec Record, ok bool) {
	known := e.resolver.cache.find(ctx, s.Key())
	if known == nil {
		return Record{}, false
	}
	return known.Record, true
}

// Outages returns origins whose robots.txt can't be fetched, the last that was tried
// first. Only the last 50 are kept.
func (e *Engine) Outages() []Outage {
	return e.resolver.cache.outages.list(e.resolver.robots, time.Now())
}

// A Size is what a cache holds in memory.
type Size struct {
	Entries int
	Bytes   int64
	Bound   int64 // on Bytes
}

// Cached returns the size of the compiled rules in memory.
func (e *Engine) Cached() (s Size) {
	s.Entries, s.Bytes, s.Bound = e.resolver.cache.entries.Usage()
	return s
}

func (e *Engine) setCrawler(r *Request) {
	if r.Crawler == nil {
		r.Crawler = e.crawlers.Default
	}
}

// question asks for what a crawler obeys with these product tokens.
func (r *Request) question(tokens []string) question {
	scope := Scope{Origin: r.Target.Origin(), Crawlers: r.Crawler.configured}
	return question{scope.Key(), TokenKey(tokens), r.UserAgent}
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
		e.log.Warn("the crawler's User-Agent does not have the product token that it obeys: sites can't tell that they mean it",
			"crawler", r.Crawler.Name, "product_tokens", r.Crawler.Tokens, "user_agent", r.UserAgent)
	}
}
