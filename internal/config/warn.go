package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"robotsgate/policy/glob"
)

// Warnings returns what is allowed but is probably not intended, as of now.
func (c *Config) Warnings() []Mistake {
	w := source{file: c.source.file, lines: c.source.lines, bad: map[string]bool{}}
	c.warnOpen(&w)
	c.warnCrawlers(&w)
	now := time.Now()
	for i, o := range c.Overrides {
		w.require(!o.Expired(now), fmt.Sprintf("overrides[%d].expires", i), "expired at %s: the override is ignored", o.Expires.Format(time.RFC3339))
	}
	c.warnUnseen(&w)
	w.require(c.Robots.MaxRedirects >= 5, "robots.max_redirects", "%d: RFC 9309, section 2.3.1.2 asks to follow at least five", c.Robots.MaxRedirects)
	w.require(c.Log.AuditKeyFile == "" || c.Log.Audit != "", "log.audit_key_file", "without log.audit there is no log, and the key is not used: set log.audit, too")
	_ = w.sorted()
	return w.mistakes
}

// warnUnseen warns of overrides for paths on hosts whose https the gate does not intercept.
func (c *Config) warnUnseen(w *source) {
	for i, o := range c.Overrides {
		some := len(o.Paths) > 0 && !slices.ContainsFunc(o.Paths, func(p string) bool {
			return p == "/" || p == "/*" || p == "*" || p == "/$" && o.Action == Deny
		})
		for _, host := range o.Hosts {
			// A name that the pattern matches. A passthrough pattern for all these names matches it, too.
			name := strings.ReplaceAll(host.String(), "*", "a")
			unseen := !c.HTTPS.Intercept || slices.ContainsFunc(c.HTTPS.Passthrough, func(g glob.Glob) bool { return g.Match(name) })
			if some && unseen {
				w.mistake(fmt.Sprintf("overrides[%d].paths", i), "https to %s is passed through unseen, where an override for some paths does not count: it holds for plain http only", host)
			}
		}
	}
}

// warnOpen warns of an open proxy, which every host that reaches its port may use.
func (c *Config) warnOpen(w *source) {
	host, _, _ := net.SplitHostPort(c.Listen)
	addr, _ := netip.ParseAddr(host)
	loopback := addr.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
	open := c.UnknownClients == AllowClients || slices.ContainsFunc(c.CrawlersOrDefault(), func(crawler Crawler) bool {
		everyone := func(p netip.Prefix) bool { return p.Bits() == 0 }
		return crawler.Login == (Login{}) && (len(crawler.Sources) == 0 || slices.ContainsFunc(crawler.Sources, everyone))
	})
	w.require(loopback || !open, "listen", "%s is reachable from other machines and any client may use the gate, which makes it an open proxy: listen on 127.0.0.1, or let only your own clients reach the port", c.Listen)
}

func (c *Config) warnCrawlers(w *source) {
	for i, crawler := range c.Crawlers {
		path := fmt.Sprintf("crawlers[%d]", i)
		if j := slices.IndexFunc(c.Crawlers[:i], func(before Crawler) bool { return before.covers(crawler) }); j >= 0 {
			w.mistake(path+".name", "%s is never reached: %s, before it, matches every client that it would", cut(crawler.Name), cut(c.Crawlers[j].Name))
		}
		for j, token := range crawler.ProductTokens {
			w.require(!strings.ContainsAny(token, "0123456789"), fmt.Sprintf("%s.product_tokens[%d]", path, j),
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
