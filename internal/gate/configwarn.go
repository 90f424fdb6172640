package gate

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"robotsgate/internal/field"
)

// Warnings returns what is allowed but is probably not intended, as of now.
func (c *Config) Warnings() []field.Mistake {
	w := c.source.Warnings()
	c.warnOpen(w)
	c.warnCrawlers(w)
	c.warnExpired(w)
	return w.All()
}

func (c *Config) warnExpired(w *field.Mistakes) {
	for i := range c.Overrides {
		c.Overrides[i].Warn(w.In(fmt.Sprintf("overrides[%d]", i)))
	}
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
		k.Warn(m)
		k.Sign.Warn(m.In("sign"), agents)
		seen := c.HTTPS.Intercept && len(c.HTTPS.Passthrough) == 0
		m.Require(k.Sign.Key() == nil || seen, "sign", "https that is passed through unseen can't be signed")
		m.Require(k.UserAgent == "" || seen, "user_agent", "https that is passed through unseen has the client's own User-Agent")
	}
}
