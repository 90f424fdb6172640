package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"robotsgate/internal/config"
)

// Serve runs the gate until it is told to stop.
type Serve struct {
	Configured
	Listen string `placeholder:"ADDR" help:"Address to listen on, in place of the file's."`
}

// Help is shown by --help.
func (*Serve) Help() string {
	return "Example:\n  robotsgate serve -c config.yaml\n  robotsgate serve --listen 127.0.0.1:8080"
}

// Run serves. SIGTERM and SIGINT end it in good order, a second one at once.
func (s *Serve) Run(ctx Context, io Streams) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	if s.Listen != "" {
		if err := c.SetListen(s.Listen); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
	}
	for _, w := range c.Warnings() {
		io.warn("%s", w)
	}
	// Before anything is printed: who waits for that may signal at once.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from then on a signal ends the process at once
	log := logger(c.Log, io.Err)
	adopt(log)
	ignoreHangup(ctx, log)
	g, err := newGate(c, io.Out, log)
	if err != nil {
		return err
	}
	banner := io.Out
	if c.Log.Audit == "-" {
		banner = io.Err                // stdout is for records then
		signal.Ignore(syscall.SIGPIPE) // who reads them may go: that is a record lost, not the gate's end
	}
	vars := clientVars("http://"+dialable(g.listener.Addr().String()), g.clients)
	fmt.Fprintf(banner, "robotsgate %s listens on http://%s\n", version(), g.listener.Addr())
	fmt.Fprintf(banner, "CA certificate: %s\n", g.authority.CertFile())
	if g.adminListener != nil {
		fmt.Fprintf(banner, "Admin: http://%s\n", g.adminListener.Addr())
	}
	if c.Mode == config.Report {
		fmt.Fprintln(banner, "Mode: report. Denied requests are marked and logged, but let through.")
	}
	fmt.Fprintf(banner, "To use it, paste this into a shell:\n  %s\n", vars.line())

	return g.run(ctx)
}

// ignoreHangup answers SIGHUP, by which daemons are told to reload, with words
// instead of the process's end.
func ignoreHangup(ctx context.Context, log *slog.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
				log.Warn("this version can't reload its configuration; restart it to apply changes")
			case <-ctx.Done():
				return
			}
		}
	}()
}
