package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"robotsgate/policy/canonical"
	"robotsgate/policy/internal/origintest"
)

// Short names for what is used in most tests.
var (
	newOrigins = origintest.New
	raw        = origintest.Raw
	rules      = origintest.Rules
	slow       = origintest.Slow
)

const example = "https://example.com/robots.txt"

// defaults are DefaultSettings with a small cache.
func defaults() Settings {
	c := DefaultSettings()
	c.CacheBytes = 1 << 20
	return c
}

// A crawler sends requests.
type crawler struct {
	Tokens []string // empty: the first product of its User-Agent
	KeyID  string
}

// A request is of a crawler that sends this User-Agent.
type request struct {
	target    canonical.Target
	Crawler   *crawler
	UserAgent string
}

// asks returns a request of a crawler that has no product token of its own.
func asks(t testing.TB, url, userAgent string) request {
	t.Helper()
	target, err := canonical.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return request{target, &crawler{}, userAgent}
}

func (r request) tokens() []string {
	token, _, _ := strings.Cut(r.UserAgent, "/")
	switch {
	case len(r.Crawler.Tokens) > 0:
		return r.Crawler.Tokens
	case token != "":
		return []string{token}
	}
	return nil
}

// An engine decides requests by what the answers of origins mean, as package policy does.
type engine struct{ *Resolver }

// engineFor returns an engine, which is closed at the end of the test or its bubble.
func engineFor(t testing.TB, settings Settings, web http.RoundTripper, s Store, log io.Writer) *engine {
	t.Helper()
	return engineWith(t, Config{Settings: settings, Transport: web, Store: s, Log: slog.New(slog.NewTextHandler(log, nil))})
}

func engineWith(t testing.TB, c Config) *engine {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close) // twice does no harm
	return &engine{r}
}

func (e *engine) query(r request) Query {
	q := Query{Scope: Scope{Origin: r.target.Origin()}, UserAgent: "robotsgate/0", KeyID: r.Crawler.KeyID}
	if len(r.Crawler.Tokens) > 0 {
		q.UserAgent = r.Crawler.Tokens[0]
	}
	return q
}

// A decision is that of one request.
type decision struct {
	Allow  bool
	Reason string
	Robots Resolution
}

func (e *engine) Decide(ctx context.Context, r request) (d decision, err error) {
	if d.Robots, err = e.Resolve(ctx, e.query(r)); err != nil {
		return d, err
	}
	if d.Robots.File == nil {
		d.Allow, d.Reason = d.Robots.Allow, map[bool]string{true: "unavailable", false: "unreachable"}[d.Robots.Allow]
		return d, nil
	}
	v := d.Robots.File.Decide(r.target.Path, r.tokens()...)
	d.Allow, d.Reason = v.Allowed, string(v.Reason)
	return d, nil
}

func (e *engine) Refresh(ctx context.Context, r request) (Resolution, error) {
	return e.Resolver.Refresh(ctx, e.query(r), false)
}

// verdict sums up a decision in a few words.
func verdict(d decision, err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "error deadline"
	case err != nil:
		return "error other"
	case d.Allow:
		return "allow " + d.Reason + " " + string(d.Robots.State)
	}
	return "deny " + d.Reason + " " + string(d.Robots.State)
}

// durable is a Store that outlives an engine. It keeps sets as JSON, so that times
// lose their monotonic part, as on a disk.
type durable struct {
	noStore
	mu   sync.Mutex
	rows map[string][]byte
	err  error // of Save
}

func newDurable() *durable { return &durable{rows: map[string][]byte{}} }

func (d *durable) Load(_ context.Context, key string) (set Set, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	row, ok := d.rows[key]
	if !ok {
		return Set{}, false
	}
	if err := json.Unmarshal(row, &set); err != nil {
		panic(err)
	}
	if set.Good != nil && Digest(string(set.Body)) != set.Good.SHA256 {
		panic("body and digest disagree")
	}
	return set, true
}

func (d *durable) Save(_ context.Context, key string, set Set) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	if set.Empty() {
		delete(d.rows, key)
		return nil
	}
	row, err := json.Marshal(set)
	if err != nil {
		panic(err)
	}
	d.rows[key] = row
	return nil
}

func (d *durable) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}
