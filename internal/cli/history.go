package cli

import (
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/internal/history"
)

// History prints an origin's answers for robots.txt, and how their texts have changed.
type History struct {
	Configured
	history.Options
}

// Run reads and prints.
func (h *History) Run(s console.Streams) error {
	c, err := h.load()
	if err != nil {
		return err
	}
	archive, dir, err := gate.OpenSnapshots(c, s)
	if err != nil {
		return err
	}
	return history.Print(s.Out, archive, dir, &c.Robots.Settings, h.Options)
}
