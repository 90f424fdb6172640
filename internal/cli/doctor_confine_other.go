//go:build !linux || !(amd64 || arm64)

package cli

import (
	"context"
	"errors"

	"robotsgate/internal/confine"
	"robotsgate/internal/console"
)

func attempt([]string, console.Streams) error { return errors.New(attemptCommand + ": on Linux only") }

// tryConfinement says what run --confine says on this system.
func (d *Doctor) tryConfinement(_ context.Context, s console.Streams) error {
	_, err := confine.Run(confine.Options{}, nil)
	s.Status(err)
	return console.Exit(125)
}
