// Package settings translates the configuration into the settings of the parts, which know no
// keys of YAML. TestSettings checks that each key changes one setting of one part.
package settings

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"robotsgate/internal/ca"
	"robotsgate/internal/config"
	"robotsgate/policy"
	"robotsgate/proxy"
)

// Proxy returns the proxy's options, without its parts.
func Proxy(c *config.Config) proxy.Options {
	return proxy.Options{
		Settings: proxy.Settings{
			Passthrough:      c.HTTPS.Unseen,
			Tags:             c.Tags.Tags,
			Pace:             c.Pace,
			ConnectionLimits: c.Limits.ConnectionLimits,
		},
		Limits: c.Limits.Limits,
	}
}

// Upstream returns the transport to origins. It refuses requests to own addresses. Commands
// without a gate pass nil for own and d.
func Upstream(c *config.Config, roots *x509.CertPool, own []netip.AddrPort, d *proxy.Descriptors) (*proxy.Transport, error) {
	e := c.Egress.Egress
	e.Roots, e.Own = roots, func() []netip.AddrPort { return own }
	e.HowToPermit = func(addr netip.Addr) string { return howToPermit(c, addr) }
	return proxy.NewTransport(e, d)
}

// howToPermit says how to permit an address that only egress.allow_private can.
func howToPermit(c *config.Config, addr netip.Addr) string {
	// In quotes, since YAML would read the colons of IPv6.
	network := strconv.Quote(netip.PrefixFrom(addr, addr.BitLen()).String())
	line, file := "egress: {allow_private: ["+network+"]}", filepath.Base(c.File())
	switch {
	case c.File() == "":
		return "Start the gate with -c FILE, and with this line in FILE: " + line
	case !c.Has("egress"):
		return "Add this line to " + file + ": " + line
	case !c.Has("egress.allow_private"):
		return "Add this line below egress: in " + file + ": allow_private: [" + network + "]"
	}
	return "Add " + network + " to egress.allow_private in " + file + "."
}

// Roots returns the roots for origins' certificates.
func Roots(c *config.Config) (*x509.CertPool, error) {
	pool, err := RootsWith(c.Egress.CAFile)
	if err != nil {
		return nil, fmt.Errorf("egress.ca_file: %w", err)
	}
	return pool, nil
}

// RootsWith returns the system's roots and the certificates in file. It does not use package
// x509 to find the system's roots: that follows SSL_CERT_FILE, which in a shell that uses
// a gate names a bundle with the gate's CA, and the gate must not trust its own CA for
// origins. If the system keeps its roots elsewhere than in files, nil stands for them.
func RootsWith(file string) (*x509.CertPool, error) {
	system, _, err := ca.SystemRoots()
	if err != nil && file == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(system)
	if err != nil {
		if pool, err = x509.SystemCertPool(); err != nil {
			pool = x509.NewCertPool()
		}
	}
	if file == "" {
		return pool, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", file)
	}
	return pool, nil
}

// Engine returns the configuration of an engine. With a nil store, records are kept in memory only.
func Engine(c *config.Config, transport http.RoundTripper, s policy.Store, log *slog.Logger, onFetch func(policy.Fetch)) policy.Config {
	rules := c.Robots.Robots
	rules.HideRedirects = c.Egress.ParentHasLogin()
	return policy.Config{
		Crawlers:  Crawlers(c),
		Overrides: policy.Prepared(c.Overrides),
		Robots:    rules,
		Usage:     c.Usage,
		Transport: transport,
		Store:     s,
		Log:       log,
		OnFetch:   onFetch,
	}
}

// digits matches the first number of a version, with its dots.
var digits = regexp.MustCompile(`[0-9]+(\.[0-9]+)*`)

// Agent returns the User-Agent of fetches for crawlers without a product token. Of the program's version it has
// digits and dots only, so that it looks to firewalls as crawlers do.
func Agent(version string) string { return "robotsgate/" + cmp.Or(digits.FindString(version), "0") }

// Crawlers returns the crawlers of a configuration, and the default one.
func Crawlers(c *config.Config) policy.Crawlers {
	crawler := func(k policy.Crawler) *policy.Crawler {
		k.Mode = cmp.Or(k.Mode, c.Mode)
		return &k
	}
	all := policy.Crawlers{Default: crawler(policy.DefaultCrawler()), RefuseUnknown: c.UnknownClients == config.RefuseClients}
	for _, k := range c.Crawlers {
		all.Known = append(all.Known, crawler(k.Crawler))
	}
	return all
}
