package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/proxy"
)

// An Asker has the options of check and usage that name the crawler and the robots.txt.
type Asker struct {
	Configured
	Agent   string   `placeholder:"UA" help:"User-Agent that the crawler sends."`
	Token   []string `sep:"none" placeholder:"T" help:"Product token that the crawler obeys; the first with a group counts."`
	Crawler string   `placeholder:"NAME" help:"Ask for this crawler of FILE. Without it, for the crawler that --agent alone identifies."`
	Robots  string   `placeholder:"FILE" help:"Read this robots.txt; - is standard input. Without it the origin's is fetched."`
}

// Check decides about URLs without sending the requests.
type Check struct {
	Asker
	JSON  bool     `help:"Print JSON, one object for each URL."`
	Batch bool     `help:"Read JSON lines from standard input and answer each with one."`
	URL   []string `arg:"" optional:"" name:"URL" help:"URLs to decide about."`
}

// Run decides and prints.
func (c *Check) Run(ctx context.Context, s console.Streams) error {
	if c.Batch {
		return c.batch(s)
	}
	if len(c.URL) == 0 {
		return fmt.Errorf("which URL? robotsgate check https://example.com/")
	}
	decide, done, err := c.decider(ctx, s)
	if err != nil {
		return err
	}
	defer done()
	status := console.Exit(0)
	for _, url := range c.URL {
		t, err := c.target(url)
		var d *policy.Decision
		if err == nil {
			d, err = decide(t)
		}
		err = explained(t, err)
		if err != nil {
			s.Status(fmt.Errorf("%s: %w", url, err))
			status = 2
			continue
		}
		if !d.Allow {
			status = max(status, 1)
		}
		if err := c.print(s.Out, url, t, d); err != nil {
			return err
		}
	}
	if status != 0 {
		return status
	}
	return nil
}

// explained returns the error of a decision about t, with what to do if the name does not resolve.
func explained(t canonical.Target, err error) error {
	if errors.Is(err, proxy.ErrNoHost) {
		return fmt.Errorf("the name %s does not resolve: check its spelling, and that this machine can look up names", t.Hostname())
	}
	return err
}

// noHost is the host of a path without one. Overrides do not apply to it.
const noHost = "file.invalid"

// target parses a URL. With --robots a path is enough: only overrides need the host.
func (c *Asker) target(url string) (canonical.Target, error) {
	if c.Robots == "" {
		return canonical.ReadURL(url)
	}
	if strings.HasPrefix(url, "/") {
		return canonical.Target{Scheme: "http", Host: noHost, Path: canonical.PathOf(url)}, nil
	}
	if !strings.Contains(url, "://") {
		return canonical.Target{}, errors.New("it is neither a URL nor a path: begin it with http://, https:// or /")
	}
	t, err := canonical.ReadURL(url)
	if err != nil {
		return t, err
	}
	t.Path = canonical.PathOf(url) // as a robots.txt compares it, though the gate may not send it
	return t, nil
}

// decider returns a function that decides by the file of --robots, or else as a gate does.
func (c *Check) decider(ctx context.Context, s console.Streams) (decide func(canonical.Target) (*policy.Decision, error), done func(), err error) {
	cfg, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	crawler, err := c.crawler(gate.Crawlers(cfg))
	if err != nil {
		return nil, nil, err
	}
	if c.Robots != "" {
		body, err := readFile(c.Robots, s.In)
		if err != nil {
			return nil, nil, err
		}
		rules, exceptions := cfg.Robots.Robots, cfg.Overrides
		reserved := gate.EngineConfig(cfg, nil, nil, nil, nil).Usage
		return func(t canonical.Target) (*policy.Decision, error) {
			left := ""
			if t.Host != noHost {
				ask := policy.Request{Target: t, Crawler: crawler, UserAgent: c.Agent}
				d, decided := policy.Overridden(exceptions, rules.Readings, ask, time.Now())
				if decided {
					return d, nil
				}
				left = d.Left
			}
			d := rules.Judge(200, body, t, crawler.Obeys(c.Agent))
			reserved.Judge(d, t, crawler, rules.Readings)
			d.RobotsURL, d.Crawler, d.Enforced, d.Left = c.Robots, crawler, crawler.Mode != policy.Report, left
			return d, nil
		}, func() {}, nil
	}
	upstream, err := unguarded(cfg)
	if err != nil {
		return nil, nil, err
	}
	engine, err := policy.New(engineConfig(cfg, upstream))
	if err != nil {
		return nil, nil, err
	}
	return func(t canonical.Target) (*policy.Decision, error) {
			return engine.Decide(ctx, policy.Request{Target: t, Crawler: crawler, UserAgent: c.Agent})
		}, func() {
			engine.Close()
			upstream.Close()
		}, nil
}

// engineConfig returns the settings of an engine for a command.
func engineConfig(cfg *gate.Config, upstream *proxy.Transport) policy.Config {
	c := gate.EngineConfig(cfg, upstream, nil, slog.New(slog.DiscardHandler), nil)
	c.Agent = gate.UserAgent(version())
	return c
}

// crawler returns the crawler that the options identify.
func (c *Asker) crawler(all policy.Crawlers) (*policy.Crawler, error) {
	k, names := all.Identify(policy.Client{UserAgent: c.Agent}), all.Names()
	switch {
	case c.Crawler != "":
		if k = all.Named(c.Crawler); k == nil {
			return nil, fmt.Errorf("--crawler: no crawler is named %q: expected %s", c.Crawler, strings.Join(append(names, all.Default.Name), ", "))
		}
	case k == all.Default && all.RefuseUnknown && len(c.Token) == 0 && c.Robots == "":
		return nil, fmt.Errorf("the gate refuses this client: it matches no crawler by its User-Agent alone; name one with --crawler: %s", strings.Join(names, ", "))
	}
	if len(c.Token) > 0 {
		as := *k
		as.Tokens = c.Token
		k = &as
	}
	return k, nil
}

// unguarded returns a transport without the egress guard, for the requests of commands.
func unguarded(c *gate.Config) (*proxy.Transport, error) {
	c.Egress.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	c.Egress.DenyHosts, c.Egress.Ports = nil, nil
	return upstreamOf(c, nil)
}

// upstreamOf returns the transport to origins, which refuses requests to own addresses.
func upstreamOf(c *gate.Config, own []netip.AddrPort) (*proxy.Transport, error) {
	pool, err := gate.Roots(c)
	if err != nil {
		return nil, err
	}
	return gate.Upstream(c, pool, own, nil)
}

// readFile reads a file, or standard input for "-".
func readFile(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	const most = 64 << 20
	return io.ReadAll(io.LimitReader(in, most))
}

func (c *Check) print(w io.Writer, url string, t canonical.Target, d *policy.Decision) error {
	e := d.Explain(url)
	if t.Host != noHost {
		e.Override = d.Permit(t, http.MethodGet)
	}
	if c.JSON {
		return console.JSON(w, e)
	}
	r := checkReport{Explanation: e, Left: d.Left, Group: d.Group.Written(), Fetched: c.Robots == ""}
	if d.Crawler != nil && d.Crawler.Name != policy.DefaultCrawler().Name {
		r.Asks = d.Crawler.Name
	}
	return printReport(w, "check", r)
}

// A checkReport is a decision for people.
type checkReport struct {
	policy.Explanation
	Left    string // the reason of the override that left the decision to robots.txt
	Group   string // as the file writes it
	Asks    string // the crawler, if it is not the default
	Fetched bool   // the robots.txt is the origin's, not a file
}

// batch decides line by line, by the section robots of the configuration.
func (c *Check) batch(s console.Streams) error {
	if len(c.URL) > 0 || c.Robots != "" || c.Crawler != "" || c.Agent != "" || len(c.Token) > 0 {
		return errors.New("--batch excludes URLs, --agent, --token, --crawler and --robots: with it each line of standard input has all that is needed")
	}
	cfg, err := c.load()
	if err != nil {
		return err
	}
	rules := cfg.Robots.Robots
	strict := rules.Readings != policy.Literal
	rules.Readings = policy.Literal // "allowed" follows RFC 9309 alone; read_as has other readings
	return console.Batch(s, func(line []byte) (any, error) { return answerCheck(&rules, strict, line) })
}
