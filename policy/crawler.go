package policy

import (
	"net/netip"
	"slices"
	"strings"

	"robotsgate/internal/glob"
)

// Mode says what becomes of a denial.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce" // refuse the request
	Report  Mode = "report"  // let it through, and say that it would have been refused
)

// A Crawler is a configured client of the gate. It is matched if each kind of
// key given holds, by one of its values.
type Crawler struct {
	Name       string
	Sources    []netip.Prefix // addresses it connects from; empty: any
	UserAgents []glob.Glob    // of its User-Agent header; empty: any
	Tokens     []string       // product tokens it obeys; empty: taken from its User-Agent
	Mode       Mode
	DenyStatus int // of a refusal by a rule or an override

	MaxConnections int // to the gate, at a time; 0: no limit
}

// Crawlers are all that are configured, in order. The last resort, for clients
// that match none, is Default.
type Crawlers struct {
	Known   []*Crawler
	Default *Crawler
}

// Identify returns the first crawler that matches a client's address and
// User-Agent.
func (c Crawlers) Identify(client netip.Addr, userAgent string) *Crawler {
	for _, k := range c.Known {
		if k.matches(client.Unmap(), userAgent) {
			return k
		}
	}
	return c.Default
}

func (c *Crawler) matches(client netip.Addr, userAgent string) bool {
	if len(c.Sources) > 0 && !slices.ContainsFunc(c.Sources, func(p netip.Prefix) bool { return p.Contains(client) }) {
		return false
	}
	return len(c.UserAgents) == 0 || slices.ContainsFunc(c.UserAgents, func(g glob.Glob) bool { return g.Match(userAgent) })
}

// Obeys returns the product tokens that the crawler answers to when it sends
// this User-Agent (RFC 9309, 2.2.1). With none only "*" binds it.
func (c *Crawler) Obeys(userAgent string) []string {
	if len(c.Tokens) > 0 {
		return c.Tokens
	}
	if token := ProductToken(userAgent); token != "" {
		return []string{token}
	}
	return nil
}

// boundTo names whom an answer binds that may be aimed at the asker.
func boundTo(tokens []string) string {
	if len(tokens) == 0 {
		return "*"
	}
	return strings.ToLower(tokens[0])
}
