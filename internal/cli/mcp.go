package cli

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/internal/mcp"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/proxy"
)

// MCP answers a model's questions.
type MCP struct {
	Configured
	Crawler string `placeholder:"NAME" help:"Answer for this crawler. Without it, for the one that a User-Agent alone identifies."`
}

// Run serves a client until standard input ends.
func (m *MCP) Run(ctx context.Context, s console.Streams) error {
	cfg, err := m.load()
	if err != nil {
		return err
	}
	admin := strings.TrimSuffix(os.Getenv("ROBOTSGATE_ADMIN"), "/")
	if u, err := url.Parse(admin); admin != "" && (err != nil || u.Scheme != "http" || u.Host == "") {
		return fmt.Errorf("the environment variable ROBOTSGATE_ADMIN: expected the URL of a gate's admin listener, such as http://127.0.0.1:9310")
	}
	if admin == "" && cfg.Admin.Listen != "" {
		admin = "http://" + clientenv.Dialable(cfg.Admin.Listen)
	}
	local, err := newLocal(cfg, admin)
	if err != nil {
		return err
	}
	defer local.close()
	// No proxy: the admin listener can't be reached through one.
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true}
	return mcp.Serve(ctx, s.In, s.Out, mcp.Options{Version: version(), Admin: admin, Crawler: m.Crawler, Transport: transport, Local: local.check})
}

// A local decides by a configuration, as check does, but the egress guard applies: a model chooses the URLs.
type local struct {
	engine   *policy.Engine
	crawlers policy.Crawlers
	upstream *proxy.Transport
}

func newLocal(cfg *gate.Config, admin string) (*local, error) {
	upstream, err := upstreamOf(cfg, ownAddresses(cfg.Listen, cfg.Admin.Listen, cfg.ListenTransparent, strings.TrimPrefix(admin, "http://")))
	if err != nil {
		return nil, err
	}
	engine, err := policy.New(engineConfig(cfg, upstream))
	return &local{engine, gate.Crawlers(cfg), upstream}, err
}

func (l *local) close() {
	l.engine.Close()
	l.upstream.Close()
}

// ownAddresses returns the addresses at which a gate listens, of those that are literal.
func ownAddresses(all ...string) (own []netip.AddrPort) {
	for _, listen := range all {
		if addr, err := netip.ParseAddrPort(cmp.Or(listen, "-")); err == nil {
			own = append(own, addr)
		}
	}
	return own
}

func (l *local) check(ctx context.Context, q mcp.Question) (*policy.Explanation, error) {
	target, err := canonical.ReadURL(q.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	c := Asker{Agent: q.Agent, Crawler: q.Crawler}
	if q.Token != "" {
		c.Token = []string{q.Token}
	}
	k, err := c.crawler(l.crawlers)
	if err != nil {
		return nil, err
	}
	d, err := l.engine.Decide(ctx, policy.Request{Target: target, Crawler: k, UserAgent: q.Agent})
	if err != nil {
		return nil, explained(target, err)
	}
	e := d.Explain(target.String())
	return &e, nil
}
