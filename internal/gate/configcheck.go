package gate

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"robotsgate/internal/field"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
)

// This file checks what no part can check alone.

// check reports values that have the right type but make no sense.
func (c *Config) check() {
	c.checkListeners()
	names := map[string]int{}
	for i := range c.Crawlers {
		c.checkCrawler(i, names)
	}
	c.checkDefault()
	c.source.Require(c.UnknownClients != RefuseClients || len(c.Crawlers) > 0, "unknown_clients", "refuse needs crawlers: without any, every client is unknown")
	for i, names := 0, c.crawlerNames(); i < len(c.Overrides); i++ {
		c.Overrides[i].Check(c.source.In(fmt.Sprintf("overrides[%d]", i)), names)
	}
	c.checkRobots()
	c.fillMemory()
	c.Egress.Check(c.source.In("egress"))
	c.Pace.Check(c.source.In("pace"), c.crawlerNames())
	c.source.Require(c.Usage.Unread != policy.RefuseUnread || c.Tags.HTML, "usage.unread", "refuse needs tags.html: true: without it no page is read, and all would be refused")
	c.Usage.Check(c.source.In("usage"))
	c.Tags.Check(c.source.In("tags"))
	c.Fleet.Check(c.source.In("fleet"))
	c.HTTPS.Check(c.source.In("https"))
	c.Log.Audit.Check(c.source.In("log"))
}

func (c *Config) checkListeners() {
	s := c.source
	for key, address := range map[string]string{"listen": c.Listen, "admin.listen": c.Admin.Listen, "listen_transparent": c.ListenTransparent} {
		if key == "listen" || address != "" { // the others may be turned off
			s.Refuse(key, checkListen(address))
		}
	}
	c.checkPorts(s)
	c.Admin.Check(s.In("admin"))
}

// checkPorts reports listeners that want the same port.
func (c *Config) checkPorts(m *field.Mistakes) {
	at := "admin.listen"
	if !m.Given(at) {
		at = "listen"
	}
	m.Require(!sameListener(c.Listen, c.Admin.Listen), at,
		"listen (%s) and admin.listen (%s) are in each other's way: give each its own port", c.Listen, c.Admin.Listen)
	t := c.ListenTransparent
	for key, other := range map[string]string{"listen": c.Listen, "admin.listen": c.Admin.Listen} {
		m.Require(!sameListener(other, t), "listen_transparent", "%s is in the way of %s (%s): give each its own port", t, key, other)
	}
}

// checkCrawler checks the crawler at i. Names has the names of the crawlers before it,
// with their indexes.
func (c *Config) checkCrawler(i int, names map[string]int) {
	crawler, m := &c.Crawlers[i], c.source.In(fmt.Sprintf("crawlers[%d]", i))
	if first, taken := names[crawler.Name]; taken {
		m.Add("name", "%.80q is taken, by line %d: every crawler needs a name of its own", crawler.Name, c.source.Lines[fmt.Sprintf("crawlers[%d].name", first)])
	} else if crawler.Name != "" {
		names[crawler.Name] = i
	}
	crawler.Check(m)
	crawler.Sign.Check(m.In("sign"))
}

// checkDefault reports a crawler named "default" that does not match every client.
// Clients that match no crawler have this name, and would be taken for that crawler.
func (c *Config) checkDefault() {
	last := DefaultCrawler()
	i := slices.IndexFunc(c.Crawlers, func(k Crawler) bool { return k.Name == last.Name })
	if i < 0 || c.UnknownClients == RefuseClients || c.source.Bad("unknown_clients") {
		return
	}
	c.source.Require(c.Crawlers[i].Covers(&last.Crawler), fmt.Sprintf("crawlers[%d].name", i),
		"%q is what clients are called that match no crawler: choose another name, or remove its login, sources and user_agents, or write unknown_clients: refuse", last.Name)
}

// crawlerNames returns the names of all crawlers that a client may be: the configured
// ones, and the default one unless unknown clients are refused.
func (c *Config) crawlerNames() []string {
	known := c.Crawlers
	if c.UnknownClients == AllowClients || len(known) == 0 {
		known = append(slices.Clip(known), DefaultCrawler())
	}
	var names []string
	for _, crawler := range known {
		if crawler.Name != "" && !slices.Contains(names, crawler.Name) {
			names = append(names, crawler.Name)
		}
	}
	return names
}

// fillMemory adds to the default of limits.memory what full caches take beyond their own defaults, and as much again
// for garbage: more garbage collections than that would slow the gate down.
func (c *Config) fillMemory() {
	if !c.source.Given("limits.memory") {
		c.Limits.Memory = 2*(c.Robots.CacheBytes+c.Tags.CacheBytes) + 256<<20
	}
}

func (c *Config) checkRobots() {
	s, r := c.source, &c.Robots
	r.Check(s.In("robots"))
	// Without room for the longest robots.txt it would be fetched again and again.
	if fits := r.MaxBytes <= r.Bytes/8; s.Given("robots.disk_bytes") {
		s.Require(fits, "robots.disk_bytes", "%s is too little: at least eight times robots.max_bytes, %s", field.Size(r.Bytes), field.Size(r.MaxBytes))
	} else {
		s.Require(fits, "robots.max_bytes", "%s is too much: at most an eighth of robots.disk_bytes, %s", field.Size(r.MaxBytes), field.Size(r.Bytes))
	}
}

// checkListen checks a host:port to listen on. The host may be empty.
func checkListen(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("expected host:port, such as 127.0.0.1:9309 or [::1]:9309, got %.80q", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("expected a port between 0 and 65535, got %.80q", port)
	}
	_, notAddr := netip.ParseAddr(host) // canonical.Host refuses an address with a zone
	if _, err := canonical.Host(host); host != "" && notAddr != nil && err != nil {
		return fmt.Errorf("%.80q is no host to listen on: %w", host, err)
	}
	return nil
}

// sameListener reports whether the addresses a and b conflict.
func sameListener(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	everywhere := func(host string) bool {
		addr, err := netip.ParseAddr(host)
		return host == "" || err == nil && addr.IsUnspecified()
	}
	return hostA == hostB || everywhere(hostA) || everywhere(hostB)
}
