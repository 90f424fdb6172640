package cli

import (
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"

	"robotsgate/internal/ca"
	"robotsgate/internal/config"
	"robotsgate/internal/glob"
	"robotsgate/policy"
	"robotsgate/proxy"
)

// What follows translates the configuration into the parts' own settings: a
// part knows nothing of YAML, and a key is used in one place.

func newUpstream(c *config.Config, own func() []netip.AddrPort) (*proxy.Upstream, error) {
	roots, err := roots(c.Egress.CAFile)
	if err != nil {
		return nil, err
	}
	ports := make([]uint16, len(c.Egress.Ports))
	for i, p := range c.Egress.Ports {
		ports[i] = uint16(p)
	}
	return proxy.NewUpstream(proxy.Egress{
		AllowPrivate:          c.Egress.AllowPrivate,
		DenyHosts:             c.Egress.DenyHosts,
		Ports:                 ports,
		Parent:                c.Egress.Proxy,
		Roots:                 roots,
		DialTimeout:           c.Egress.DialTimeout,
		ResponseHeaderTimeout: c.Egress.ResponseHeaderTimeout,
		IdleTimeout:           c.Egress.IdleTimeout,
		MaxConnsPerHost:       c.Egress.MaxConnsPerHost,
		Own:                   own,
	}), nil
}

// roots returns what origins' certificates are checked against: the system's
// roots and those in file. Not x509's own idea of the system's, which follows
// SSL_CERT_FILE: in a shell that uses the gate that is our own bundle, and the
// gate would take its own CA's word for any origin. Where the system keeps no
// files, as some do, nil stands for what it has instead.
func roots(file string) (*x509.CertPool, error) {
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
		return nil, fmt.Errorf("egress.ca_file: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("egress.ca_file: %s holds no PEM certificate", file)
	}
	return pool, nil
}

func engineConfig(c *config.Config, transport http.RoundTripper, s policy.Store, log *slog.Logger, onFetch func(policy.Fetch)) policy.Config {
	out := policy.Config{
		Crawlers:  crawlers(c),
		Robots:    robots(c.Robots),
		Transport: transport,
		Store:     s,
		Log:       log,
		OnFetch:   onFetch,
	}
	for _, o := range c.Overrides {
		out.Overrides = append(out.Overrides, policy.Override{
			Hosts: o.Hosts, Paths: policy.PathRules(o.Paths), Crawlers: o.Crawlers,
			Allow: o.Action == config.Allow, Reason: o.Reason, Expires: o.Expires,
		})
	}
	return out
}

func crawlers(c *config.Config) policy.Crawlers {
	var known []*policy.Crawler
	for _, k := range c.Crawlers {
		known = append(known, crawler(k, c.Mode))
	}
	return policy.Crawlers{Known: known, Default: crawler(config.DefaultCrawler(), c.Mode)}
}

func crawler(k config.Crawler, global config.Mode) *policy.Crawler {
	mode := k.Mode
	if mode == "" {
		mode = global
	}
	return &policy.Crawler{
		Name: k.Name, Sources: k.Sources, UserAgents: k.UserAgents, Tokens: k.ProductTokens,
		Mode: policy.Mode(mode), DenyStatus: k.DenyStatus, MaxConnections: k.MaxConnections,
	}
}

func robots(r config.Robots) policy.Robots {
	return policy.Robots{
		MaxAge: r.MaxAge, MinAge: r.MinAge, StaleFor: r.StaleFor, AfterStale: r.AfterStale,
		Timeout: r.Timeout, MaxBytes: int(r.MaxBytes), MaxRedirects: r.MaxRedirects,
		TooManyRequests: r.TooManyRequests, Unavailable: r.Unavailable, UserAgent: r.UserAgent,
		CacheBytes: int64(r.CacheBytes),
	}
}

func passthrough(h config.HTTPS) func(host string) bool {
	return func(host string) bool {
		return !h.Intercept || slices.ContainsFunc(h.Passthrough, func(g glob.Glob) bool { return g.Match(host) })
	}
}

// logger writes for people or, as JSON, for programs.
func logger(c config.Log, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
