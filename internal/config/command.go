package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// What follows changes a configuration by what a command line or the
// environment says in its place.

// Admit lets in clients that match no crawler.
func (c *Config) Admit() {
	c.UnknownClients = AllowClients
	if len(c.Crawlers) > 0 {
		c.catchAll()
	}
}

// catchAll makes sure that the last crawler matches everybody. Its name is its own:
// the one that stands for unknown clients may be taken where there could be none.
func (c *Config) catchAll() {
	anybody := func(k Crawler) bool { return k.Login == (Login{}) && len(k.Sources) == 0 && len(k.UserAgents) == 0 }
	if slices.ContainsFunc(c.Crawlers, anybody) {
		return
	}
	rest := DefaultCrawler()
	for n := 2; slices.ContainsFunc(c.Crawlers, func(k Crawler) bool { return k.Name == rest.Name }); n++ {
		rest.Name = fmt.Sprintf("unknown-%d", n)
	}
	c.Crawlers = append(slices.Clip(c.Crawlers), rest)
}

// SetProductToken makes every crawler obey one product token, and clients that match
// none of them too.
func (c *Config) SetProductToken(token string) error {
	if !productToken.MatchString(token) {
		return fmt.Errorf("%q is not a product token: only letters, digits, _ and - are allowed", token)
	}
	if c.UnknownClients == AllowClients {
		c.catchAll()
	}
	for i := range c.Crawlers {
		c.Crawlers[i].ProductTokens = []string{token}
	}
	return nil
}

// ParseProxy reads the URL of a parent proxy as environment variables hold it,
// where the scheme may be missing.
func ParseProxy(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	if rest, ok := strings.CutPrefix(text, "socks5h://"); ok {
		text = "socks5://" + rest // names are always resolved by the proxy
	}
	return parseProxy(text)
}
