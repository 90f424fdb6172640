package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"robotsgate/policy/glob"
)

// check reports values that have the right type but make no sense.
func (c *Config) check() {
	c.checkListeners()
	names := map[string]int{}
	for i := range c.Crawlers {
		c.checkCrawler(i, names)
	}
	c.checkDefault()
	if c.UnknownClients == RefuseClients && len(c.Crawlers) == 0 {
		c.source.mistake("unknown_clients", "refuse needs crawlers: without any, every client is unknown")
	}
	for i := range c.Overrides {
		c.checkOverride(i)
	}
	c.checkRobots()
	c.checkEgress()
	c.checkLog()
	c.checkFiles()
}

func (c *Config) checkListeners() {
	s := &c.source
	if err := checkListen(c.Listen); err != nil {
		s.mistake("listen", "%v", err)
	}
	if c.Admin.Listen != "" {
		if err := checkListen(c.Admin.Listen); err != nil {
			s.mistake("admin.listen", "%v", err)
		}
		if sameListener(c.Listen, c.Admin.Listen) {
			at := "admin.listen"
			if !s.has(at) {
				at = "listen"
			}
			s.mistake(at, "listen (%s) and admin.listen (%s) are in each other's way: give each its own port", c.Listen, c.Admin.Listen)
		}
	}
	for i, host := range c.Admin.Hosts {
		name, err := glob.Name(host)
		if err != nil {
			s.mistake(fmt.Sprintf("admin.hosts[%d]", i), "%q is no host name: %v", cut(host), err)
			continue
		}
		c.Admin.Hosts[i] = name
	}
}

var productToken = regexp.MustCompile(`\A[A-Za-z0-9_-]+\z`)

// checkCrawler checks the crawler at i. Names has the names of the crawlers before it,
// with their indexes.
func (c *Config) checkCrawler(i int, names map[string]int) {
	s, crawler, path := &c.source, c.Crawlers[i], fmt.Sprintf("crawlers[%d]", i)
	switch first, taken := names[crawler.Name]; {
	case crawler.Name == "":
		s.mistake(path+".name", "is missing: every crawler needs one")
	case taken:
		s.mistake(path+".name", "%q is taken, by line %d: every crawler needs a name of its own", cut(crawler.Name), s.line(fmt.Sprintf("crawlers[%d].name", first)))
	default:
		names[crawler.Name] = i
	}
	c.checkLogin(crawler.Login, path+".login")
	for j, token := range crawler.ProductTokens {
		at := fmt.Sprintf("%s.product_tokens[%d]", path, j)
		switch {
		case token == "*":
			s.mistake(at, "* is what every crawler falls back to: leave it out")
		case !productToken.MatchString(token):
			s.mistake(at, "expected letters, digits, _ and - only, such as ExampleBot, got %q", cut(token))
		}
	}
}

// checkDefault reports a crawler named "default" that does not match every client.
// Clients that match no crawler have this name, and would be taken for that crawler.
func (c *Config) checkDefault() {
	last := DefaultCrawler()
	i := slices.IndexFunc(c.Crawlers, func(k Crawler) bool { return k.Name == last.Name })
	if i < 0 || c.UnknownClients == RefuseClients || c.source.bad["unknown_clients"] || c.Crawlers[i].covers(last) {
		return
	}
	c.source.mistake(fmt.Sprintf("crawlers[%d].name", i), "%q is what clients are called that match no crawler: choose another name, or remove its login, sources and user_agents, or write unknown_clients: refuse", last.Name)
}

// dotSegment matches a path with a dot segment that more of the path follows. It stops
// at a *, which may match into the query, where dots have no meaning.
var dotSegment = regexp.MustCompile(`(?i)\A[^*?]*/(\.|%2e){1,2}/`)

func (c *Config) checkOverride(i int) {
	s, o, path := &c.source, c.Overrides[i], fmt.Sprintf("overrides[%d]", i)
	if len(o.Hosts) == 0 {
		s.mistake(path+".hosts", `is missing: name the hosts it is for, such as ["*.partner.example"], or ["*"] for all`)
	}
	for j, p := range o.Paths {
		at := fmt.Sprintf("%s.paths[%d]", path, j)
		switch {
		case !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "*"):
			s.mistake(at, "%q can't match: a path starts with / or *", cut(p))
		case dotSegment.MatchString(p):
			s.mistake(at, "%q can't match: a URL is judged without . and .. as parts of its path", cut(p))
		}
	}
	for j, name := range o.Crawlers {
		if names := c.crawlerNames(); !slices.Contains(names, name) {
			s.mistake(fmt.Sprintf("%s.crawlers[%d]", path, j), "no crawler is named %q: expected %s", cut(name), few(names))
		}
	}
	if o.Action == "" {
		s.mistake(path+".action", "is missing: write allow or deny")
	}
	if strings.TrimSpace(o.Reason) == "" {
		s.mistake(path+".reason", `is missing: say why, such as "contract 2026-17"; annotations and the audit log show it`)
	}
}

// crawlerNames returns the names of all crawlers that a client may be: the configured
// ones, and the default one unless unknown clients are refused.
func (c *Config) crawlerNames() []string {
	var names []string
	for _, crawler := range c.Crawlers {
		if crawler.Name != "" && !slices.Contains(names, crawler.Name) {
			names = append(names, crawler.Name)
		}
	}
	if last := DefaultCrawler().Name; (c.UnknownClients == AllowClients || len(c.Crawlers) == 0) && !slices.Contains(names, last) {
		names = append(names, last)
	}
	return names
}

// few lists names, at most ten of them.
func few(names []string) string {
	const most = 10
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return cmp.Or(strings.Join(names, ", "), "a crawler with a name")
}

func (c *Config) checkRobots() {
	s, r := &c.source, &c.Robots
	if r.MaxAge <= 0 || r.MaxAge > 24*time.Hour {
		s.mistake("robots.max_age", "%s is out of bounds: more than 0s and at most 24h (RFC 9309, section 2.4)", short(r.MaxAge))
	}
	// A shorter max_age alone must not conflict with the default of min_age.
	if !s.has("robots.min_age") {
		r.MinAge = min(r.MinAge, r.MaxAge)
	}
	if r.MinAge > r.MaxAge && !s.bad["robots.max_age"] {
		s.mistake("robots.min_age", "%s is more than robots.max_age, %s", short(r.MinAge), short(r.MaxAge))
	}
	if r.MaxBytes < 500*KiB {
		s.mistake("robots.max_bytes", "%v is too little: at least 500KiB (RFC 9309, section 2.5)", r.MaxBytes)
	}
	if r.MaxRedirects < 0 || r.MaxRedirects > 20 {
		s.mistake("robots.max_redirects", "%d is out of bounds: 0 to 20", r.MaxRedirects)
	}
	// Without room for the longest robots.txt it would be fetched again and again.
	if room := r.DiskBytes / 8; r.MaxBytes > room && s.has("robots.disk_bytes") {
		s.mistake("robots.disk_bytes", "%v is too little: at least eight times robots.max_bytes, %v", r.DiskBytes, r.MaxBytes)
	} else if r.MaxBytes > room {
		s.mistake("robots.max_bytes", "%v is too much: at most an eighth of robots.disk_bytes, %v", r.MaxBytes, r.DiskBytes)
	}
}

func (c *Config) checkEgress() {
	for i, port := range c.Egress.Ports {
		if port < 1 || port > 65535 {
			c.source.mistake(fmt.Sprintf("egress.ports[%d]", i), "%d is no port: 1 to 65535", port)
		}
	}
}

func (c *Config) checkLog() {
	if c.Log.AuditRequired && c.Log.Audit == "" {
		c.source.mistake("log.audit_required", "true needs log.audit: without a file nothing could be served")
	}
}
