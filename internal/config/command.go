package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// What follows changes a configuration by what a command line or the
// environment says in its place.

// SetProductToken makes every crawler obey one product token, and clients that match
// none of them too.
func (c *Config) SetProductToken(token string) error {
	if !productToken.MatchString(token) {
		return fmt.Errorf("%q is not a product token: only letters, digits, _ and - are allowed", token)
	}
	anybody := func(k Crawler) bool { return k.Login == (Login{}) && len(k.Sources) == 0 && len(k.UserAgents) == 0 }
	if !slices.ContainsFunc(c.Crawlers, anybody) && c.UnknownClients == AllowClients {
		rest := DefaultCrawler()
		if slices.ContainsFunc(c.Crawlers, func(k Crawler) bool { return k.Name == rest.Name }) {
			rest.Name = "unknown"
		}
		c.Crawlers = append(slices.Clip(c.Crawlers), rest)
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
