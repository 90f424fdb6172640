package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"robotsgate/internal/ca"
	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/demo"
	"robotsgate/internal/gate"
	"robotsgate/proxy"
)

// Demo runs a gate with a sample site, which needs no network.
type Demo struct {
	Options Run `embed:""`
}

// Run runs one command as [Run] does, or waits for a signal. Without -c everything that the gate
// keeps is in a folder that is removed at the end.
func (d *Demo) Run(ctx context.Context, s console.Streams) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	dir, err := os.MkdirTemp("", "robotsgate-demo-")
	if err != nil {
		return fmt.Errorf("%w; set TMPDIR to a folder in which this user may write", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &d.Options
	c, err := demoConfig(r, dir)
	if err != nil {
		return err
	}
	site := demo.New()
	wrap := func(u proxy.Upstream) proxy.Upstream { return sampleOrigin{u, site} }
	command, err := r.command("demo")
	if err != nil {
		return err
	}
	if len(command) > 0 {
		return r.behind(context.WithoutCancel(ctx), s, c, command, wrap, nil)
	}
	if r.Confine || r.RequireRequests {
		return errors.New("which command? robotsgate demo --confine -- curl https://shop.example/")
	}
	return r.behind(ctx, s, c, nil, wrap, func(_ context.Context, s console.Streams, c *gate.Config, o gate.Options, _ []string) (int, []string, error) {
		g, err := gate.New(c, o)
		if err != nil {
			return 0, nil, err
		}
		if err := printDemo(g, s, dir); err != nil {
			g.Close()
			return 0, nil, err
		}
		return 0, nil, g.Run(ctx)
	})
}

// demoConfig returns the configuration of the demonstration, with dir for its data, or that of -c.
func demoConfig(r *Run, dir string) (*gate.Config, error) {
	c, err := gate.ParseConfig("", demo.Config, os.LookupEnv)
	if err == nil {
		c.DataDir, c.Limits.ShutdownGrace = dir, time.Second
	}
	if r.Config != "" {
		c, err = r.load()
	}
	if err != nil {
		return nil, err
	}
	// No parent proxy is taken from the environment: in a shell with pasted lines it may be a
	// demonstration that has ended.
	return c, r.adapt(c, func(string) string { return "" })
}

// printDemo prints how to use the demonstration.
func printDemo(g *gate.Gate, s console.Streams, dir string) error {
	file, proxy := filepath.Join(dir, "env"), "http://"+g.Address()
	lines := commandVars(g).Lines("export %s=%s", clientenv.QuoteShell)
	if err := ca.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n")); err != nil {
		return err
	}
	return printReport(s.Out, "demo", demoReport{
		Proxy: proxy, Admin: "http://" + g.AdminAddress() + "/",
		Dir: dir, CA: g.ClientFiles().Cert, Key: spki(g),
		Env: clientenv.QuoteShell(file), Browser: clientenv.QuoteShell(filepath.Join(dir, "browser")),
	})
}

// A demoReport says where the demonstration's gate and its files are.
type demoReport struct {
	Proxy, Admin string // URLs
	Dir, CA      string // paths
	Key          string // SHA-256 of the CA's public key, by which Chromium can trust it
	Env, Browser string // paths, quoted for a shell
}

// A sampleOrigin is the Upstream of the demonstration: the sample site answers for its hosts.
type sampleOrigin struct {
	proxy.Upstream
	site *demo.Site
}

func (o sampleOrigin) RoundTrip(r *http.Request) (*http.Response, error) {
	if demo.Has(r.URL.Hostname()) {
		return o.site.RoundTrip(r)
	}
	return o.Upstream.RoundTrip(r)
}

func (o sampleOrigin) Check(host, port string) error {
	if demo.Has(host) {
		return nil
	}
	return o.Upstream.Check(host, port)
}

// Dial is for tunnels that are passed through, which the demonstration's configuration has none of.
func (o sampleOrigin) Dial(ctx context.Context, host, port string) (net.Conn, error) {
	if demo.Has(host) {
		return nil, fmt.Errorf("%s has no tunnels", host)
	}
	return o.Upstream.Dial(ctx, host, port)
}
