package policy

import (
	"net/netip"
	"slices"
	"strings"

	"robotsgate/policy/glob"
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
	Login      *Login         // that it has to prove; nil: none
	Sources    []netip.Prefix // addresses it connects from; empty: any
	UserAgents []glob.Glob    // of its User-Agent header; empty: any
	Tokens     []string       // product tokens it obeys; empty: taken from its User-Agent
	Mode       Mode
	DenyStatus int // of a refusal by a rule or an override

	MaxConnections int // to the gate, at a time; 0: no limit

	configured bool // one of Crawlers.Known, which New and With mark; see Scope
}

// A Login is what a crawler proves that it is itself by.
type Login struct {
	User string
	Hash []byte // of the password, by bcrypt
}

// A Client is what is known of who sends a request.
type Client struct {
	Addr      netip.Addr
	UserAgent string
	// AnyAgent says that UserAgent is not known yet: it may turn out to be any.
	AnyAgent bool
	// Proves reports whether the client has proved a login. It is asked only where
	// everything else holds; nil: it proves none.
	Proves func(*Login) bool
}

// Crawlers are all that are configured, in order. The last resort, for clients
// that match none, is Default.
type Crawlers struct {
	Known         []*Crawler
	Default       *Crawler
	RefuseUnknown bool // those for whom there is only Default
}

// mark marks the crawlers that are configured.
func (c Crawlers) mark() {
	for _, k := range c.Known {
		if !k.configured { // another engine may be reading it
			k.configured = true
		}
	}
}

// Identify returns the first crawler that matches a client, Default if none does.
func (c Crawlers) Identify(client Client) *Crawler {
	client.Addr = client.Addr.Unmap()
	for _, k := range c.Known {
		if k.mayBe(client) && (k.Login == nil || client.Proves != nil && client.Proves(k.Login)) {
			return k
		}
	}
	return c.Default
}

// Invites reports whether a client that matches no crawler could do so by a login.
func (c Crawlers) Invites(client Client) bool {
	client.Addr = client.Addr.Unmap()
	return slices.ContainsFunc(c.Known, func(k *Crawler) bool { return k.Login != nil && k.mayBe(client) })
}

// Named returns the crawler of a name, nil if there is none.
func (c Crawlers) Named(name string) *Crawler {
	for _, k := range append(slices.Clone(c.Known), c.Default) {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// mayBe reports whether all but the login holds.
func (c *Crawler) mayBe(client Client) bool {
	if len(c.Sources) > 0 && !slices.ContainsFunc(c.Sources, func(p netip.Prefix) bool { return p.Contains(client.Addr) }) {
		return false
	}
	return len(c.UserAgents) == 0 || client.AnyAgent || slices.ContainsFunc(c.UserAgents, func(g glob.Glob) bool { return g.Match(client.UserAgent) })
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

// tokenKey names whom an answer binds that may be aimed at the asker.
func tokenKey(tokens []string) string {
	if len(tokens) == 0 {
		return "*"
	}
	return strings.ToLower(tokens[0])
}
