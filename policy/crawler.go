package policy

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"

	"robotsgate/policy/glob"
	"robotsgate/policy/usage"
)

// Mode says what happens to a denied request. The zero value means Enforce.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce" // refuse the request
	Report  Mode = "report"  // send it, and say that it would be denied
)

// A Crawler is a configured client. A client matches it if it matches one value of each
// of Login, Sources and UserAgents that is set.
type Crawler struct {
	Name           string          `yaml:"name" doc:"a name, such as default"`                                                            // no other of Crawlers.Known has it
	Login          Login           `yaml:"login" secret:"true"`                                                                           // the zero value: none is required, so never pass empty values by mistake
	Sources        []netip.Prefix  `yaml:"sources" doc:"an address range with its length, and no bits set behind it, such as 10.0.0.0/8"` // addresses it connects from; empty: any
	UserAgents     []glob.Glob     `yaml:"user_agents" glob:"text" doc:"a pattern, such as \"*examplebot*\""`                             // of its User-Agent header; empty: any
	Tokens         []string        `yaml:"product_tokens" doc:"a product token, such as ExampleBot"`                                      // product tokens it obeys; empty: taken from its User-Agent
	UserAgent      string          `yaml:"user_agent" doc:"a User-Agent, such as ExampleBot/1.0"`                                         // that is sent in place of the client's, and by the fetches for it; empty: the client's own
	Purposes       []usage.Purpose `yaml:"purposes" enum:"train-ai,ai-input,search,tdm" doc:"a purpose, such as train-ai"`                // what it fetches for; empty: no usage preference refuses its requests
	ContentUse     usage.Level     `yaml:"content_use" enum:"immediate,reference,full,"`                                                  // how far it uses content; empty: no level refuses its requests
	Mode           Mode            `yaml:"mode" enum:"enforce,report,"`
	DenyStatus     int             `yaml:"deny_status" enum:"403,451"`                                   // of a refusal by a rule or an override; 0: 403
	MaxConnections int             `yaml:"max_connections" doc:"a whole number, 0 or more, such as 100"` // to the gate, at a time; 0: no limit

	// Wrap returns what sends the fetches that the crawler's requests cause, in place of [Config].Transport.
	// Package proxy sends its requests so, too. nil: they are sent as those of other crawlers.
	Wrap func(http.RoundTripper) http.RoundTripper

	// KeyID is the id of the key by which Wrap signs; empty: it does not sign.
	KeyID string

	asks *Crawler // for which files are fetched; nil: this one
}

// Obeying returns a crawler that obeys these product tokens, and is otherwise k. Its files are fetched as those of k:
// the client that names the tokens must not choose the User-Agent of a fetch.
func (k *Crawler) Obeying(tokens []string) *Crawler {
	other := *k
	other.Tokens, other.asks = tokens, cmp.Or(k.asks, k)
	return &other
}

// DefaultCrawler returns the crawler with the defaults of every configured one. It stands for clients that match none,
// too.
func DefaultCrawler() Crawler { return Crawler{Name: "default", DenyStatus: http.StatusForbidden} }

// Declares reports whether k says what it uses content for, without which no usage preference refuses its requests.
func (k *Crawler) Declares() bool { return len(k.Purposes) > 0 || k.ContentUse != "" }

// A Login identifies a crawler: it is what the crawler sends in Proxy-Authorization, by the Basic scheme.
type Login struct {
	User string `yaml:"user" doc:"a user name, such as news" secret:"true"`
	Hash string `yaml:"password_bcrypt" doc:"a bcrypt hash" secret:"true"` // of the password
}

// Required reports whether there is a login at all.
func (l Login) Required() bool { return l != (Login{}) }

// A Client is what is known of the sender of a request.
type Client struct {
	Addr      netip.Addr
	UserAgent string
	// AnyAgent says that UserAgent is not known yet, so that every pattern matches it.
	AnyAgent bool
	// Proves reports whether the client has sent a login's password. It is called only if
	// everything else matches; nil: it has sent none.
	Proves func(*Login) bool
}

// Crawlers are all configured crawlers, in order.
type Crawlers struct {
	Known         []*Crawler
	Default       *Crawler // of clients that match none; an Engine adds it if it is nil
	RefuseUnknown bool     // the caller is to refuse clients that match none
}

// Identify returns the first crawler that matches a client, Default if none does.
func (c Crawlers) Identify(client Client) *Crawler {
	client.Addr = client.Addr.Unmap()
	for _, k := range c.Known {
		if k.mayBe(client) && (!k.Login.Required() || client.Proves != nil && client.Proves(&k.Login)) {
			return k
		}
	}
	return c.Default
}

// Invites reports whether a client that matches no crawler could match one with a login.
func (c Crawlers) Invites(client Client) bool {
	client.Addr = client.Addr.Unmap()
	return slices.ContainsFunc(c.Known, func(k *Crawler) bool { return k.Login.Required() && k.mayBe(client) })
}

// Candidates returns the crawlers that a client may be, whatever its User-Agent. Default is one of them unless
// another certainly matches, or clients that match none are refused.
func (c Crawlers) Candidates(client Client) (all []*Crawler) {
	client.Addr, client.AnyAgent = client.Addr.Unmap(), true
	for _, k := range c.Known {
		if !k.mayBe(client) || k.Login.Required() && (client.Proves == nil || !client.Proves(&k.Login)) {
			continue
		}
		all = append(all, k)
		if len(k.UserAgents) == 0 {
			return all
		}
	}
	if !c.RefuseUnknown {
		all = append(all, c.Default)
	}
	return all
}

// NeedLogin reports whether no client is served without a login.
func (c Crawlers) NeedLogin() bool {
	return c.RefuseUnknown && !slices.ContainsFunc(c.Known, func(k *Crawler) bool { return !k.Login.Required() })
}

// Names returns the names of the known crawlers.
func (c Crawlers) Names() (names []string) {
	for _, k := range c.Known {
		names = append(names, k.Name)
	}
	return names
}

// Named returns the crawler with a name, nil if there is none.
func (c Crawlers) Named(name string) *Crawler {
	for _, k := range append(slices.Clone(c.Known), c.Default) {
		if k != nil && k.Name == name {
			return k
		}
	}
	return nil
}

// Wrapped returns what sends for each crawler with a Wrap, in place of t.
func (c Crawlers) Wrapped(t http.RoundTripper) map[*Crawler]http.RoundTripper {
	all := map[*Crawler]http.RoundTripper{}
	for _, k := range append(slices.Clone(c.Known), c.Default) {
		if k != nil && k.Wrap != nil {
			all[k] = k.Wrap(t)
		}
	}
	return all
}

// mayBe reports whether a client matches c but for the login.
func (c *Crawler) mayBe(client Client) bool {
	if len(c.Sources) > 0 && !slices.ContainsFunc(c.Sources, func(p netip.Prefix) bool { return p.Contains(client.Addr) }) {
		return false
	}
	return len(c.UserAgents) == 0 || client.AnyAgent || slices.ContainsFunc(c.UserAgents, func(g glob.Glob) bool { return g.Match(client.UserAgent) })
}

// Obeys returns the product tokens of the crawler when its client sends
// this User-Agent (RFC 9309, 2.2.1). Without any it obeys only the group for "*".
func (c *Crawler) Obeys(userAgent string) []string {
	if len(c.Tokens) > 0 {
		return c.Tokens
	}
	if token := ProductToken(cmp.Or(c.UserAgent, userAgent)); token != "" {
		return []string{token}
	}
	return nil
}
