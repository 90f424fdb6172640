package cli

import (
	"robotsgate/internal/console"
	"robotsgate/internal/history/report"
)

// History shows how an origin's robots.txt, and its tdmrep.json, have changed.
type History struct {
	Configured
	report.Options
}

// Run reads and prints.
func (h *History) Run(s console.Streams) error {
	c, err := h.load()
	if err != nil {
		return err
	}
	return report.Print(s, c, h.Options)
}
