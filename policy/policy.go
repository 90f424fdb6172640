// Package policy decides whether a crawler may fetch a URL: by the operator's
// overrides, then by the origin's robots.txt (RFC 9309), which it fetches,
// keeps and renews.
//
// Make an [Engine] with [New], from a [Config] with [DefaultRobots] in it. Make
// the [Target] of each request with [ParseURL] or [ParseTarget], and call
// [Engine.Decide] before the request is sent. The [Decision] says whether it may be
// sent, and why. [Robots.Judge] decides by a robots.txt at hand, without an Engine.
//
// The package opens no sockets of its own: fetches go through the RoundTripper in
// the Config, and records that outlive the process go to the [Store].
package policy

import (
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
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if c.Store == nil {
		c.Store = noStore{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.OnFetch == nil {
		c.OnFetch = func(Fetch) {}
	}
	if c.Crawlers.Default == nil {
		c.Crawlers.Default = &Crawler{Name: "default"}
	}
	c.Crawlers.mark()
	return c
}

// A Fetch is what became of asking an origin for its robots.txt.
type Fetch struct {
	Origin  string
	Outcome string // a State, or "error" where nothing could be asked
	Took    time.Duration
}

// A Request is what is asked of the Engine.
type Request struct {
	Target    Target
	Crawler   *Crawler // nil: the default one
	UserAgent string   // the header as sent

	whole bool // about all of the host, of which Target is the root
}

// Reason says why a decision is what it is.
type Reason string

// The reasons of decisions.
const (
	ByRule        Reason = "rule"        // an Allow or Disallow line
	NoMatch       Reason = "no-match"    // no rule of the group matches
	NoGroup       Reason = "no-group"    // no group is for this crawler
	Implicit      Reason = "implicit"    // robots.txt itself
	ByOverride    Reason = "override"    // the operator's
	IsUnavailable Reason = "unavailable" // there is no robots.txt
	IsUnreachable Reason = "unreachable" // robots.txt can't be had, which denies
	TooComplex    Reason = "too-complex" // the rules take too many steps for this URL, which denies
)

// A Decision is allow or deny, with its reason and evidence.
type Decision struct {
	Allow    bool
	Enforced bool // false: a denial that is let through (report mode)
	Reason   Reason
	Crawler  *Crawler
	Tokens   []string        // the crawler's product tokens
	Token    string          // the one that has a group; else the first; may be ""
	Rule     robotstxt.Rule  // of ByRule
	Group    robotstxt.Group // the group obeyed, if any
	Note     string          // an override's reason
	ReadAs   string          // the path and query that were denied, where servers may read the request's so; else empty
	Robots   *Resolution     // the evidence; nil for ByOverride
	URL      string          // of robots.txt; empty for ByOverride
	Asked    time.Time       // as of when the overrides were looked at
}

// Denied reports whether the request must be refused.
func (d *Decision) Denied() bool { return !d.Allow && d.Enforced }

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
	return &Engine{crawlers: c.Crawlers, overrides: c.Overrides, resolver: newResolver(c), log: c.Log}, nil
}

// Reconfigured returns an engine that decides as c says and shares with e all records and
// the fetches that are under way. Both may be used at the same time. The Store, the Log,
// Robots.MaxBytes and Robots.CacheBytes of c are ignored: those of [New] hold. Closing one
// closes both.
func (e *Engine) Reconfigured(c Config) *Engine {
	c = c.complete()
	return &Engine{crawlers: c.Crawlers, overrides: c.Overrides, resolver: e.resolver.shared.resolver(c), log: e.log}
}

// Close ends background work and saves what is not yet saved.
func (e *Engine) Close() { e.resolver.close() }

// Crawlers returns who is known.
func (e *Engine) Crawlers() Crawlers { return e.crawlers }

// Decide says whether the request may be sent. It fetches robots.txt if need
// be, which takes as long as robots.timeout at most, and as long again where
// what was fetched for another crawler binds that one only (401, 403, 429, 5xx, Vary);
// after that the origin counts as unreachable. An error means that there is no
// decision and nothing may be sent: ErrProhibited, ErrNoHost, ErrBusy, ErrExhausted,
// ErrCostly, the context's own, or that the engine is closed. Paths that
// [Engine.CheckPath] reports are judged as they stand.
func (e *Engine) Decide(ctx context.Context, r Request) (Decision, error) {
	e.setCrawler(&r)
	e.checkUserAgent(r)
	readings := e.resolver.robots.Readings
	d, decided := byOverride(e.overrides, readings, r, time.Now())
	if decided {
		return d, nil
	}
	key, url := keyAndURL(r)
	st, err := e.resolver.resolve(ctx, key, tokenKey(d.Tokens), r.UserAgent)
	if err != nil {
		return Decision{}, err
	}
	d.Robots, d.URL = &st, url
	if quick := d; quick.judgeWithin(robotstxt.Quick(), r.Target, readings) {
		return quick, nil
	}
	if err := e.resolver.slow.acquire(ctx); err != nil {
		return Decision{}, err
	}
	defer e.resolver.slow.release()
	d.judgeWithin(robotstxt.Thorough(), r.Target, readings)
	return d, nil
}

// CheckPath reports a target whose path must not be sent, since servers resolve it in
// different ways: the error is ErrHiddenDots.
func (e *Engine) CheckPath(t Target) error { return e.resolver.robots.Readings.check(t) }

// keyAndURL returns the key of the record that decides about a request, and the URL of the
// robots.txt. Both are parts of one string: Decide allocates it for every request.
func keyAndURL(r Request) (key, url string) {
	const path = "/robots.txt"
	if r.Crawler.configured {
		all := crawlersPrefix + r.Target.Scheme + "://" + r.Target.Host + path
		return all[:len(all)-len(path)], all[len(crawlersPrefix):]
	}
	url = r.Target.Scheme + "://" + r.Target.Host + path
	return url[:len(url)-len(path)], url
}

func (e *Engine) setCrawler(r *Request) {
	if r.Crawler == nil {
		r.Crawler = e.crawlers.Default
	}
}

// checkUserAgent warns at a crawler's first request if its User-Agent lacks its product token: sites
// that name the token in robots.txt, and find another name in their logs, are misled (RFC 9309, 2.2.1).
func (e *Engine) checkUserAgent(r Request) {
	if len(r.Crawler.Tokens) == 0 || r.UserAgent == "" {
		return
	}
	if _, checked := e.checked.Load(r.Crawler.Name); checked {
		return
	}
	e.checked.Store(r.Crawler.Name, true)
	agent := strings.ToLower(r.UserAgent)
	if !slices.ContainsFunc(r.Crawler.Tokens, func(token string) bool { return strings.Contains(agent, strings.ToLower(token)) }) {
		e.log.Warn("the crawler's User-Agent does not have the product token that it obeys: sites can't tell that they mean it",
			"crawler", r.Crawler.Name, "product_tokens", r.Crawler.Tokens, "user_agent", r.UserAgent)
	}
}

// DecideHost decides about all of an origin at once, for tunnels whose requests
// can't be seen: it denies only when the rule for "/" does and the group obeyed
// allows nothing else. An override allows a host if its paths are all there are.
func (e *Engine) DecideHost(ctx context.Context, r Request) (Decision, error) {
	r.Target.Path, r.whole = "/", true
	d, err := e.Decide(ctx, r)
	if err == nil {
		d.forHost()
	}
	return d, err
}

// forHost makes a decision about "/" one about the whole host.
func (d *Decision) forHost() {
	if d.Reason == ByRule && !d.Allow && d.Group.HasAllow() {
		d.Allow, d.Reason, d.Rule = true, NoMatch, robotstxt.Rule{}
	}
}

// Refresh fetches an origin's robots.txt now, whatever is known of it.
func (e *Engine) Refresh(ctx context.Context, r Request) (Resolution, error) {
	e.setCrawler(&r)
	key, _ := keyAndURL(r)
	return e.resolver.refresh(ctx, key, tokenKey(r.Crawler.Obeys(r.UserAgent)), r.UserAgent)
}

// Peek returns what an origin's robots.txt means now to the crawler of a request, as far as it is
// known, without a fetch. due says that a request would start one. ok is false if nothing is
// known that is for this crawler.
func (e *Engine) Peek(ctx context.Context, r Request) (res Resolution, due, ok bool) {
	e.setCrawler(&r)
	key, _ := keyAndURL(r)
	return e.resolver.peek(ctx, key, tokenKey(r.Crawler.Obeys(r.UserAgent)))
}

// Known returns the record of a scope, without a fetch.
func (e *Engine) Known(ctx context.Context, s Scope) (rec Record, ok bool) {
	known := e.resolver.cache.find(ctx, s.Key())
	return *known.record(), known != nil
}

func byOverride(overrides []Override, readings Readings, r Request, now time.Time) (d Decision, decided bool) {
	d = Decision{Crawler: r.Crawler, Tokens: r.Crawler.Obeys(r.UserAgent), Enforced: r.Crawler.Mode != Report, Asked: now}
	if len(d.Tokens) > 0 {
		d.Token = d.Tokens[0]
	}
	path := spelledPath{path: r.Target.Path, readings: readings}
	for _, o := range overrides {
		if readAs, applies := o.applies(r, &path, now); applies {
			d.Allow, d.Reason, d.Note, d.ReadAs = o.Allow, ByOverride, o.Reason, readAs
			return d, true
		}
	}
	return d, false
}

// judge decides by the evidence in d.Robots, as Decide does, but at once.
func (d *Decision) judge(t Target, readings Readings) {
	if quick := *d; quick.judgeWithin(robotstxt.Quick(), t, readings) {
		*d = quick
		return
	}
	d.judgeWithin(robotstxt.Thorough(), t, readings)
}

// judgeWithin decides by the evidence in d.Robots. All readings of the path share the
// effort; it returns false if that was not enough, which denies.
func (d *Decision) judgeWithin(effort robotstxt.Effort, t Target, readings Readings) bool {
	if d.Robots.File == nil {
		d.withoutRules(t)
		return true
	}
	d.judgePath(t.Path, &effort)
	d.judgeReadings(t.Path, readings, &effort)
	return d.Reason != TooComplex
}

// judgePath decides about one reading of a path by the rules in d.Robots.
func (d *Decision) judgePath(path string, effort *robotstxt.Effort) {
	v := d.Robots.File.DecideWithin(effort, path, d.Tokens...)
	d.Allow, d.Reason, d.Rule, d.Group = v.Allowed, Reason(v.Reason), v.Rule, v.Group
	if token := v.Group.Token(); token != "" {
		d.Token = token
	}
}

// withoutRules decides where there is no robots.txt to obey.
func (d *Decision) withoutRules(t Target) {
	switch {
	case t.IsRobots():
		d.Allow, d.Reason = true, Implicit // RFC 9309, 2.2.2
	case d.Robots.Allow:
		d.Allow, d.Reason = true, IsUnavailable
	default:
		d.Reason = IsUnreachable
	}
}

// Judge decides about a target as an Engine would if the origin had just
// answered with this status and body. It is for robots.txt files at hand.
func (r *Robots) Judge(status int, body []byte, t Target, tokens []string) Decision {
	now := time.Now()
	s := &Snapshot{Status: status, Fetched: now, Since: now}
	st := r.resolution(s, nil, now)
	if s.good() {
		st.File = robotstxt.Parse(body, r.MaxBytes)
		s.setFile(st.File)
		st.Good = s
	}
	d := Decision{Enforced: true, Tokens: tokens, Robots: &st}
	if len(tokens) > 0 {
		d.Token = tokens[0]
	}
	d.judge(t, r.Readings)
	return d
}
