package cli

import (
	"fmt"

	"robotsgate/internal/console"
	"robotsgate/internal/history/report"
	"robotsgate/policy"
)

// History shows how an origin's robots.txt, and its tdmrep.json, have changed.
type History struct {
	Configured
	report.Options
}

// Run reads and prints.
func (h *History) Run(s console.Streams) error {
	if err := policy.CheckTokens(h.Token...); err != nil {
		return fmt.Errorf("--token: %w", err)
	}
	c, err := h.load()
	if err != nil {
		return err
	}
	return report.Print(s, c, h.Options)
}
