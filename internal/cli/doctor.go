package cli

import (
	"context"
	"errors"

	"robotsgate/internal/console"
	"robotsgate/internal/doctor"
)

// Doctor checks that this shell's clients use a gate and trust its CA.
type Doctor struct {
	Configured
	Confine bool `help:"Try to get out of run --confine in the ways that differ from machine to machine, and report each."`
}

// Run prints the findings.
func (d *Doctor) Run(ctx context.Context, s console.Streams) error {
	if d.Confine {
		if d.Config != "" {
			return errors.New("doctor --confine takes no -c: its gate has a configuration of its own")
		}
		return doctor.TryConfinement(ctx, s)
	}
	c, err := d.load()
	if err != nil {
		return err
	}
	return doctor.Run(ctx, s, c)
}
