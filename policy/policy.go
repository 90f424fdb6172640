// Package policy decides whether a crawler may fetch a URL: by the operator's
// overrides, then by the origin's robots.txt (RFC 9309) and what it says of the use of content.
//
// Make an [Engine] with [New], from a [Config] with [DefaultRobots] in it. Make
// the target of each request with [canonical.ParseURL], and call
// [Engine.Decide] before the request is sent. The [Decision] says whether it may be
// sent, and why. [Robots.Judge] decides by a robots.txt at hand, without an Engine.
//
// The files of origins come from a [snapshot.Resolver], which fetches and keeps them; [Engine.Snapshots] returns it.
// The package opens no sockets of its own: fetches go through the RoundTripper in
// the Config, and what outlives the process goes to its Store.
//
// [Config.Replay] decides a past request again, and [Evidence] is a decision in JSON.
package policy

// Where to change what.
//
//	how a product token is found:
//		token.go
//	what a status of robots.txt means, such as 429, and when it is fetched:
//		package snapshot
//	what the use of content refuses before a request is sent:
//		preference.go, and a story in testdata/origins/usage.txtar
//	what an override is for, and what it does:
//		override.go, and a case of allowlist_test.go; mistakes and warnings: overridecheck.go
//	a member of the JSON of refusals and of check --json:
//		evidence.go, and docs/annotations.md

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/snapshot"
)

// A Config is what an Engine decides by. Only Robots is required.
type Config struct {
	Crawlers  Crawlers
	Overrides []Override // the first that applies decides, before robots.txt
	Robots    Robots
	Usage     Usage
	Agent     string               // User-Agent of fetches for crawlers without product tokens; empty: robotsgate/0
	Transport http.RoundTripper    // for fetching robots.txt, with any limits on destinations; nil: http.DefaultTransport
	Store     snapshot.Store       // nil: snapshots are kept in memory only
	Shared    bool                 // several gates share the Store
	Log       *slog.Logger         // nil: none
	OnFetch   func(snapshot.Fetch) // called after every fetch; may be nil
}

// complete returns c with defaults for the fields that were left out.
func (c Config) complete() Config {
	c.Agent = cmp.Or(c.Agent, "robotsgate/0")
	c.Transport = cmp.Or(c.Transport, http.DefaultTransport)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Overrides = Prepared(c.Overrides)
	c.Crawlers.Default = cmp.Or(c.Crawlers.Default, &Crawler{Name: "default"})
	return c
}

// snapshots returns what a [snapshot.Resolver] needs of c.
func (c *Config) snapshots() snapshot.Config {
	return snapshot.Config{
		Settings: c.Robots.Settings, Transport: c.Transport, Store: c.Store, Shared: c.Shared,
		Log: c.Log, OnFetch: c.OnFetch,
	}
}

// A Request is one request to decide about.
type Request struct {
	Target    canonical.Target
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
	config    Config // with defaults for the fields that were left out
	snapshots *snapshot.Resolver
	wrapped   map[*Crawler]http.RoundTripper // of crawlers with Wrap
	checked   sync.Map                       // names of crawlers, see checkUserAgent
}

// New returns an engine that works until Close. It is an error if c.Robots lacks a
// value that must be positive.
func New(c Config) (*Engine, error) {
	c = c.complete()
	snapshots, err := snapshot.New(c.snapshots())
	if err != nil {
		return nil, err
	}
	return newEngine(c, snapshots), nil
}

// Reconfigured returns an engine that decides as c says and shares with e the Log and all snapshots, see
// [snapshot.Resolver.Reconfigured]. Both may be used at the same time. Closing one closes both.
func (e *Engine) Reconfigured(c Config) *Engine {
	c.Log = e.config.Log
	c = c.complete()
	return newEngine(c, e.snapshots.Reconfigured(c.snapshots()))
}

func newEngine(c Config, snapshots *snapshot.Resolver) *Engine {
	return &Engine{config: c, snapshots: snapshots, wrapped: c.Crawlers.Wrapped(c.Transport)}
}

// Close ends background work and saves the snapshots that are not saved yet.
func (e *Engine) Close() { e.snapshots.Close() }

// Snapshots returns what the engine knows of the files of origins.
func (e *Engine) Snapshots() *snapshot.Resolver { return e.snapshots }

// Peek returns what an origin's robots.txt means now to the crawler of a request, see [snapshot.Resolver.Peek].
func (e *Engine) Peek(ctx context.Context, r Request) (res snapshot.Resolution, due, ok bool) {
	return e.snapshots.Peek(ctx, e.robotsFor(r))
}

// Known returns what is known for the crawler of a request: the scope of its answers, and these.
func (e *Engine) Known(ctx context.Context, r Request) (snapshot.Scope, snapshot.Set, bool) {
	q := e.robotsFor(r)
	set, ok := e.snapshots.Known(ctx, q)
	return e.snapshots.Scope(q), set, ok
}

// Refresh fetches an origin's robots.txt now, see [snapshot.Resolver.Refresh], on behalf of the crawler of a request and
// of every other that has an answer of its own.
func (e *Engine) Refresh(ctx context.Context, r Request) (res snapshot.Resolution, err error) {
	q := e.robotsFor(r)
	var all sync.WaitGroup
	begun := time.Now()
	for of, other := range e.Askers(r.Target.Origin()) {
		switch _, known := e.snapshots.Known(ctx, other); {
		case of == e.snapshots.Scope(q):
		case known:
			all.Go(func() { _, _ = e.snapshots.Refresh(ctx, other, e.config.Usage.TDMRep) })
		default: // another gate may have an answer
			e.snapshots.Outdate(other, e.config.Usage.TDMRep, begun)
		}
	}
	res, err = e.snapshots.Refresh(ctx, q, e.config.Usage.TDMRep)
	all.Wait()
	return res, err
}

// Askers returns the query for an origin's robots.txt of each crawler that is configured, by its scope: crawlers that
// are alike to the origin have one.
func (e *Engine) Askers(origin string) map[snapshot.Scope]snapshot.Query {
	all := map[snapshot.Scope]snapshot.Query{}
	for _, k := range append(slices.Clone(e.config.Crawlers.Known), e.config.Crawlers.Default) {
		q := e.query(snapshot.Scope{Origin: origin}, k)
		all[e.snapshots.Scope(q)] = q
	}
	return all
}

// Crawlers returns the configured crawlers.
func (e *Engine) Crawlers() Crawlers { return e.config.Crawlers }

// Usage returns what is done about usage preferences.
func (e *Engine) Usage() Usage { return e.config.Usage }

// UnreachableStatus returns the status of a refusal because robots.txt is unreachable.
func (e *Engine) UnreachableStatus() int {
	return cmp.Or(e.config.Robots.UnreachableStatus, http.StatusForbidden)
}

// Decide says whether the request may be sent. It fetches robots.txt if needed, see [snapshot.Resolver.Resolve] for
// how long that takes. With Usage.TDMRep, a request that robots.txt allows waits for tdmrep.json too, for
// Robots.Timeout at most.
//
// An error means that there is no decision and the request must not be sent: that of
// r.Destination, or one of [snapshot.Resolver.Resolve]. Call [Engine.CheckPath] first: Decide does not
// refuse ambiguous paths.
func (e *Engine) Decide(ctx context.Context, r Request) (*Decision, error) {
	r.Crawler = cmp.Or(r.Crawler, e.config.Crawlers.Default)
	e.checkUserAgent(r)
	readings := e.config.Robots.Readings
	d, decided := Overridden(e.config.Overrides, readings, r, time.Now())
	if r.Destination != nil && !(decided && d.Denied()) {
		host, port, _ := net.SplitHostPort(r.Target.Address())
		if err := r.Destination.Check(host, port); err != nil {
			return nil, err
		}
	}
	if decided {
		if d.Allow && r.Crawler.Declares() {
			if err := e.stateBeside(ctx, r, d); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	q := e.robotsFor(r)
	res, err := e.snapshots.Resolve(ctx, q)
	if err != nil {
		return nil, err
	}
	d.Robots, d.RobotsURL = &res, q.Scope.URL()
	d.judge(r, readings)
	if e.config.Usage.TDMRep {
		if d.TDMRep, err = e.tdmrepFor(ctx, r, d); err != nil {
			return nil, err
		}
	}
	e.config.Usage.judge(d, r, readings)
	return d, nil
}

// robotsFor asks for the robots.txt that the crawler of a request obeys.
func (e *Engine) robotsFor(r Request) snapshot.Query {
	return e.query(snapshot.Scope{Origin: r.Target.Origin()}, cmp.Or(r.Crawler, e.config.Crawlers.Default))
}

// query asks for a file of an origin, on behalf of a crawler.
//
// The User-Agent of a fetch is the crawler's own, else its first configured product token (RFC 9309, 2.2.1), else the
// program's name. It has no text of a client: that could make an origin's firewall answer 403, which lifts the rules
// (RFC 9309, 2.3.1.3).
func (e *Engine) query(of snapshot.Scope, k *Crawler) snapshot.Query {
	k = cmp.Or(k.asks, k)
	agent := e.config.Agent
	if len(k.Tokens) > 0 {
		agent = k.Tokens[0]
	}
	return snapshot.Query{Scope: of, UserAgent: cmp.Or(k.UserAgent, agent), KeyID: k.KeyID, Transport: e.wrapped[k]}
}

// DecideHost decides about all of an origin at once, for tunnels with requests
// that can't be seen. It denies only if the rule for "/" does and the group obeyed
// allows no other path. An override allows a host, or leaves it to robots.txt, only if it is for
// all paths and methods; one for some methods denies it.
func (e *Engine) DecideHost(ctx context.Context, r Request) (*Decision, error) {
	r.Target.Path, r.whole = "/", true
	return e.Decide(ctx, r)
}

// ErrHiddenDots is the error of [Engine.CheckPath]: the path has a dot segment next to an
// encoded separator, as in /public/..%2Fprivate, which servers resolve differently.
var ErrHiddenDots = errors.New("the path has a dot segment next to an encoded slash or backslash, which some servers resolve; send the path without it")

// CheckPath reports a target with a path that must not be sent, since servers resolve it in
// different ways: the error is ErrHiddenDots.
func (e *Engine) CheckPath(t canonical.Target) error {
	if e.config.Robots.Readings != Literal && robotstxt.HidesDotSegment(t.Path) {
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
	if len(r.Crawler.Tokens) == 0 || r.UserAgent == "" || r.Crawler.UserAgent != "" { // the last: see Crawler.Warn
		return
	}
	if _, checked := e.checked.LoadOrStore(r.Crawler.Name, true); checked {
		return
	}
	if !r.Crawler.namedIn(r.UserAgent) {
		e.config.Log.Warn("the crawler's User-Agent does not have the product token that the crawler obeys: sites that name the token in robots.txt can't recognize the crawler",
			"crawler", r.Crawler.Name, "product_tokens", r.Crawler.Tokens, "user_agent", r.UserAgent)
	}
}
