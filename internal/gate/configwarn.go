package gate

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"robotsgate/internal/field"
	"robotsgate/policy"
	"robotsgate/policy/glob"
)

// Warnings returns what is allowed but is probably not intended, as of now.
func (c *Config) Warnings() []field.Mistake {
	w := c.source.Warnings()
	c.warnOpen(w)
	c.warnCrawlers(w)
	policy.WarnOverrides(c.Overrides, w, "overrides", c.HTTPS.Unseen)
	c.warnUsage(w)
	return w.All()
}

// warnOpen warns of an open proxy, which every host that reaches its port may use.
func (c *Config) warnOpen(w *field.Mistakes) {
	open := c.UnknownClients == AllowClients || slices.ContainsFunc(c.CrawlersOrDefault(), func(crawler Crawler) bool {
		everyone := func(p netip.Prefix) bool { return p.Bits() == 0 }
		return !crawler.Login.Required() && (len(crawler.Sources) == 0 || slices.ContainsFunc(crawler.Sources, everyone))
	})
	for key, address := range map[string]string{"listen": c.Listen, "listen_transparent": c.ListenTransparent} {
		w.Require(!open || address == "" || isLoopback(address), key, "%s is reachable from other machines and any client may use the gate, which makes it an open proxy: listen on 127.0.0.1, or let only your own clients reach the port", address)
	}
}

// isLoopback reports whether only this machine can connect to an address.
func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	addr, _ := netip.ParseAddr(host)
	return addr.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

func (c *Config) warnCrawlers(w *field.Mistakes) {
	agents := map[string]string{} // by the ID of the key
	for i := range c.Crawlers {
		k, m := &c.Crawlers[i], w.In(fmt.Sprintf("crawlers[%d]", i))
		if j := slices.IndexFunc(c.Crawlers[:i], func(before Crawler) bool { return before.Covers(&k.Crawler) }); j >= 0 {
			m.Add("name", "%.80s is never reached: %.80s, before it, matches every client that it would", k.Name, c.Crawlers[j].Name)
		}
		k.Warn(m)
		k.Sign.Warn(m.In("sign"), agents)
		seen := c.HTTPS.Intercept && len(c.HTTPS.Passthrough) == 0
		m.Require(k.Sign.Key() == nil || seen, "sign", "https that is passed through unseen can't be signed")
		m.Require(k.UserAgent == "" || seen, "user_agent", "https that is passed through unseen has the client's own User-Agent")
	}
}

// warnUsage warns of settings of usage that do less than they seem to.
func (c *Config) warnUsage(w *field.Mistakes) {
	refuse := c.Usage.Refuses()
	purposes := slices.IndexFunc(c.Crawlers, func(k Crawler) bool { return k.Declares() })
	w.Require(!refuse || purposes >= 0, "usage.reserved", "refuse refuses nothing, since no crawler has purposes or content_use: say what a crawler fetches for, such as purposes: [train-ai] in crawlers")
	w.Require(!refuse || purposes < 0 || c.Tags.HTML, "tags.html", "false: the preferences in pages are not known, so that usage.reserved: refuse goes by robots.txt, tdmrep.json and response headers alone")
	unseen := slices.ContainsFunc(c.HTTPS.Passthrough, func(g glob.Glob) bool { return g.String() == "*" })
	for key, all := range map[string]bool{"https.intercept": !c.HTTPS.Intercept, "https.passthrough": unseen} {
		w.Require(!refuse || purposes < 0 || !all, key, "https responses are not seen: for https, usage.reserved: refuse goes by what robots.txt and tdmrep.json state for / alone")
	}
	if purposes >= 0 && !c.source.Given("usage.reserved") {
		key := map[bool]string{true: "content_use", false: "purposes"}[len(c.Crawlers[purposes].Purposes) == 0]
		w.Add(fmt.Sprintf("crawlers[%d].%s", purposes, key), "nothing is refused by it unless usage.reserved is refuse: write usage: {reserved: refuse}, or annotate if annotations are enough")
	}
}
