package config

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
func (c *Config) Warnings() []Mistake {
	w := newSource(c.source.file, c.source.lines)
	c.warnOpen(&w)
	c.warnCrawlers(&w)
	c.warnSign(&w)
	policy.WarnOverrides(c.Overrides, w.Mistakes, "overrides", c.HTTPS.Unseen)
	c.warnUsage(&w)
	c.warnPace(&w)
	c.Robots.Warn(w.In("robots"))
	c.Log.Audit.Warn(w.In("log"))
	return w.sorted()
}

// warnOpen warns of an open proxy, which every host that reaches its port may use. Clients whose connections are
// redirected can send no login.
func (c *Config) warnOpen(w *source) {
	open := c.UnknownClients == AllowClients || slices.ContainsFunc(c.CrawlersOrDefault(), func(crawler Crawler) bool {
		everyone := func(p netip.Prefix) bool { return p.Bits() == 0 }
		return crawler.Login == (Login{}) && (len(crawler.Sources) == 0 || slices.ContainsFunc(crawler.Sources, everyone))
	})
	for key, address := range map[string]string{"listen": c.Listen, "listen_transparent": c.ListenTransparent} {
		w.Require(!open || address == "" || isLoopback(address), key, "%s is reachable from other machines and any client may use the gate, which makes it an open proxy: listen on 127.0.0.1, or let only your own clients reach the port", address)
	}
	logins := len(c.Crawlers) > 0 && !slices.ContainsFunc(c.Crawlers, func(k Crawler) bool { return k.Login == (Login{}) })
	w.Require(c.ListenTransparent == "" || c.UnknownClients == AllowClients || !logins, "listen_transparent",
		"every crawler needs a login, and redirected clients can send none: all of them are refused; give one of the crawlers sources in place of a login")
}

// warnPace warns of a queue with fewer places than there are crawlers: those that have a place keep out the others.
func (c *Config) warnPace(w *source) {
	n := len(c.CrawlersOrDefault())
	if len(c.Crawlers) > 0 && c.UnknownClients == AllowClients {
		n++ // clients that match no crawler
	}
	w.Require(!c.Pace.On() || c.Pace.MaxQueue >= n, "pace.max_queue", "%d: there are %d crawlers, and some find no place while others wait: write %d or more", c.Pace.MaxQueue, n, n)
}

// isLoopback reports whether only this machine can connect to an address.
func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	addr, _ := netip.ParseAddr(host)
	return addr.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

func (c *Config) warnCrawlers(w *source) {
	for i, crawler := range c.Crawlers {
		path := fmt.Sprintf("crawlers[%d]", i)
		if j := slices.IndexFunc(c.Crawlers[:i], func(before Crawler) bool { return before.covers(crawler) }); j >= 0 {
			w.Add(path+".name", "%s is never reached: %s, before it, matches every client that it would", field.Cut(crawler.Name), field.Cut(c.Crawlers[j].Name))
		}
		for j, token := range crawler.ProductTokens {
			w.Require(!strings.ContainsAny(token, "0123456789"), fmt.Sprintf("%s.product_tokens[%d]", path, j),
				"%s has a digit, which product tokens of RFC 9309, section 2.2.1 have not: other readers of robots.txt may cut it there", token)
		}
	}
}

// covers reports whether k certainly matches every client that other matches.
func (k Crawler) covers(other Crawler) bool {
	anyAgent := slices.ContainsFunc(k.UserAgents, func(g glob.Glob) bool { return g.String() == "*" })
	return (k.Login == Login{} || k.Login == other.Login) &&
		coversAll(k.Sources, other.Sources, func(wide, p netip.Prefix) bool { return wide.Bits() <= p.Bits() && wide.Contains(p.Addr()) }) &&
		(anyAgent || coversAll(k.UserAgents, other.UserAgents, func(a, b glob.Glob) bool { return strings.EqualFold(a.String(), b.String()) }))
}

// coversAll reports whether for each of others an item of list covers it. No items stand for
// all clients.
func coversAll[T any](list, others []T, covers func(item, other T) bool) bool {
	missed := func(other T) bool {
		return !slices.ContainsFunc(list, func(item T) bool { return covers(item, other) })
	}
	return len(list) == 0 || len(others) > 0 && !slices.ContainsFunc(others, missed)
}

// SetListen replaces listen with an address given elsewhere, such as on the
// command line.
func (c *Config) SetListen(addr string) error {
	if err := checkListen(addr); err != nil {
		return err
	}
	c.Listen = addr
	delete(c.source.lines, "listen") // warnings must not name the file's line
	return nil
}
