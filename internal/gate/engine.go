package gate

import (
	"cmp"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"

	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/cache"
	"robotsgate/policy/pace"
	"robotsgate/policy/snapshot"
)

// EngineConfig returns the configuration of an engine. With a nil store, snapshots are kept in memory only.
func EngineConfig(c *Config, transport http.RoundTripper, s snapshot.Store, log *slog.Logger, onFetch func(snapshot.Fetch)) policy.Config {
	return policy.Config{
		Crawlers:  Crawlers(c),
		Overrides: policy.Prepared(c.Overrides),
		Robots:    c.Robots.Robots,
		Usage:     c.Usage,
		Transport: transport,
		Store:     s,
		Log:       log,
		OnFetch:   onFetch,
	}
}

// digits matches the first number of a version.
var digits = regexp.MustCompile(`[0-9]+`)

// UserAgent returns the User-Agent of fetches for crawlers without a product token. Of the program's version it has the
// first number: it looks to firewalls as crawlers do, and answers stay those of the same asker after most upgrades.
func UserAgent(version string) string { return "robotsgate/" + cmp.Or(digits.FindString(version), "0") }

// Crawlers returns the crawlers of a configuration, and the default one.
func Crawlers(c *Config) policy.Crawlers {
	crawler := func(k policy.Crawler) *policy.Crawler {
		k.Mode = cmp.Or(k.Mode, c.Mode)
		return &k
	}
	all := policy.Crawlers{Default: crawler(policy.DefaultCrawler()), RefuseUnknown: c.UnknownClients == RefuseClients}
	for _, k := range c.Crawlers {
		all.Known = append(all.Known, crawler(k.Crawler))
	}
	return all
}

// newPacer returns a pacer. In a fleet its distances hold over all gates.
func (g *Gate) newPacer() *pace.Pacer {
	c := g.config.Pace
	if g.fleet == nil {
		return pace.New(c, nil)
	}
	return pace.New(c, g.fleet.Clock())
}

// keepBudgets begins to keep what budgets count, if there are any. In a fleet the store does, and of several gates in
// one data_dir the one that owns it.
func (g *Gate) keepBudgets(c pace.Config) error {
	if len(c.Budgets) == 0 || g.budgets != nil || g.fleet != nil || !g.owner() {
		return nil
	}
	dir, err := DataDir(g.config)
	if err != nil {
		return err
	}
	g.budgets = store.OpenLineFile(filepath.Join(dir, "budgets.jsonl"), g.pacer.Kept, g.pacer.Restore, g.log)
	g.budgets.Wait() // or else more than a budget would start
	return nil
}

// openRemembered makes the cache of tags, and begins to keep it on disk. Of several gates in one data_dir the one that
// owns it does.
func (g *Gate) openRemembered() (err error) {
	g.remembered = cache.NewTags(g.config.Tags.CacheBytes)
	dir, err := DataDir(g.config)
	if err == nil && g.owner() {
		g.tags = store.OpenLineFile(filepath.Join(dir, "remembered.jsonl"), g.remembered.Kept, g.remembered.Restore, g.log)
		g.remembered.Await = g.tags.Wait
	}
	return err
}

// fetching returns what sends the fetches of robots.txt. If there is a pace, they count as starts, but
// never wait.
func (g *Gate) fetching() http.RoundTripper {
	if !g.config.Pace.On() {
		return g.wrapped()
	}
	return countedFetches{g.wrapped(), g.pacer}
}

// countedFetches tells the pacer of each request.
type countedFetches struct {
	http.RoundTripper
	pacer *pace.Pacer
}

func (f countedFetches) RoundTrip(r *http.Request) (*http.Response, error) {
	f.pacer.Started(r.URL.Scheme + "://" + r.URL.Host)
	return f.RoundTripper.RoundTrip(r)
}
