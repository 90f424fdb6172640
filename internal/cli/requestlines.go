package cli

import (
	"robotsgate/internal/gate"
	"robotsgate/internal/requestlog"
)

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
