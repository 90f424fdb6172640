package gate

import (
	"errors"
	"fmt"
	"slices"

	"robotsgate/policy"
)

// The methods of this file change a configuration by a command line or the environment.

// Admit accepts clients that match no crawler.
func (c *Config) Admit() {
	c.UnknownClients = AllowClients
	if len(c.Crawlers) > 0 {
		c.catchAll()
	}
}

// catchAll adds a crawler that matches every client, unless there is one. Its name is
// unique: with unknown_clients: refuse a crawler may be named "default".
func (c *Config) catchAll() {
	rest := DefaultCrawler()
	if slices.ContainsFunc(c.Crawlers, func(k Crawler) bool { return k.Covers(&rest.Crawler) }) {
		return
	}
	for n := 2; slices.ContainsFunc(c.Crawlers, func(k Crawler) bool { return k.Name == rest.Name }); n++ {
		rest.Name = fmt.Sprintf("unknown-%d", n)
	}
	c.Crawlers = append(slices.Clip(c.Crawlers), rest)
}

// SetProductToken makes every crawler, and unknown clients, obey one product token.
func (c *Config) SetProductToken(token string) error {
	if err := policy.CheckTokens(token); err != nil {
		return err
	}
	if c.UnknownClients == AllowClients {
		c.catchAll()
	}
	for i := range c.Crawlers {
		c.Crawlers[i].Tokens = []string{token}
		c.source.Replace(fmt.Sprintf("crawlers[%d].product_tokens", i))
	}
	return nil
}

// SetUserAgent sets the User-Agent for clients that match no crawler. The crawlers of a file have their own.
func (c *Config) SetUserAgent(userAgent string) error {
	if c.NamesAgents() {
		return errors.New("the configuration has crawlers: write user_agent there")
	}
	if userAgent == "" {
		return errors.New("is empty: leave it out to send what the command sends")
	}
	if err := policy.CheckUserAgent(userAgent); err != nil {
		return err
	}
	c.catchAll()
	last := len(c.Crawlers) - 1
	c.Crawlers[last].UserAgent = userAgent
	c.source.Replace(fmt.Sprintf("crawlers[%d].user_agent", last))
	return nil
}

// NamesAgents reports whether crawlers are the file's, so that user_agent belongs there. Those of robotsgate demo are not.
func (c *Config) NamesAgents() bool { return c.Has("crawlers") && c.File() != "" }

// CheckPorts reports listeners that want the same port, after their addresses were replaced.
func (c *Config) CheckPorts() error {
	w := c.source.Warnings()
	c.checkPorts(w)
	return w.Err()
}

// SetListen replaces listen with an address given elsewhere, such as on the
// command line.
func (c *Config) SetListen(addr string) error {
	if err := checkListen(addr); err != nil {
		return err
	}
	c.Listen = addr
	c.source.Replace("listen")
	return nil
}
