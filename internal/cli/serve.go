package cli

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/internal/requestlog"
	"robotsgate/policy"
)

// Serve runs the gate until a signal ends it.
type Serve struct {
	Configured
	RequestLines
	Pacing
	Listen string `placeholder:"ADDR" help:"Address to listen on, in place of the file's."`
}

// Run serves. SIGTERM and SIGINT let requests finish; a second signal ends at once.
func (s *Serve) Run(ctx context.Context, io console.Streams) error {
	file := gate.Watch(s.Config) // before the file is read, so that no change is missed
	c, err := s.load()
	if err != nil {
		return err
	}
	screen := requestlog.NewScreen(io.Err, "")
	for _, w := range c.Warnings() {
		io.Warn("%s", w)
	}
	// Before anything is printed: a script that waits for the output may signal at once.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from then on a signal ends the process at once
	g, err := gate.New(c, gate.Options{
		Out: io.Out, Err: io.Err, Version: version(), Commit: commit(), File: file, Load: s.load,
		Requests: s.on(screen), Screen: screen,
	})
	if err != nil {
		return err
	}
	banner := io.Out
	if c.Log.Audit.File == "-" {
		banner = io.Err                // stdout is for records
		signal.Ignore(syscall.SIGPIPE) // if the reader of stdout ends, records are lost and the gate goes on
	}
	paste := clientenv.For(proxyURL(clientenv.Dialable(g.Address()), c), g.ClientFiles()).Line()
	fmt.Fprintf(banner, "robotsgate %s listens on http://%s\n", version(), g.Address())
	fmt.Fprintf(banner, "CA certificate: %s\n", g.Authority().CertFile())
	if l := g.Transparent(); l != nil {
		fmt.Fprintf(banner, "Redirected connections: %s\n", l.Addr())
	}
	if address := g.AdminAddress(); address != "" {
		fmt.Fprintf(banner, "Admin: http://%s\n", address)
	}
	if c.Mode == policy.Report {
		fmt.Fprintln(banner, "Mode: report. Requests that would be denied are marked and logged, and sent on.")
	}
	fmt.Fprintf(banner, "To use it, paste this into a shell:\n  %s\n", paste)
	return g.Run(ctx)
}

// load reads the configuration, and applies the options of the command line.
func (s *Serve) load() (*gate.Config, error) {
	c, err := s.Configured.load()
	if err != nil {
		return nil, err
	}
	if s.Listen != "" {
		if err := c.SetListen(s.Listen); err != nil {
			return nil, fmt.Errorf("--listen: %w", err)
		}
	}
	if err := c.CheckPorts(); err != nil {
		return nil, err
	}
	s.apply(c)
	return c, nil
}

// RequestLines are the options of serve and run for lines about requests.
type RequestLines struct {
	Verbose bool `xor:"lines" help:"Show a line for every request, not only for those refused."`
	Quiet   bool `xor:"lines" help:"Show no lines about requests."`
}

// on returns which requests get a line on a screen, which may be nil, by a configuration.
func (o RequestLines) on(screen *requestlog.Screen) func(*gate.Config) requestlog.Requests {
	return func(c *gate.Config) requestlog.Requests { return o.choose(c, screen != nil) }
}

// choose returns which requests get a line. An option precedes log.requests. Without both, a
// terminal shows the refused ones.
func (o RequestLines) choose(c *gate.Config, onTerminal bool) requestlog.Requests {
	switch {
	case o.Quiet:
		return requestlog.None
	case o.Verbose:
		return requestlog.All
	case onTerminal && !c.Has("log.requests"):
		return requestlog.Refused
	}
	return c.Log.Requests
}
