//go:build !linux || !(amd64 || arm64)

package doctor

import (
	"context"
	"errors"

	"robotsgate/internal/confine"
	"robotsgate/internal/console"
)

// Attempt fails on this system.
func Attempt([]string, console.Streams) error { return errors.New(AttemptCommand + ": on Linux only") }

// TryConfinement says what run --confine says on this system.
func TryConfinement(_ context.Context, s console.Streams) error {
	_, err := confine.Run(confine.Options{}, nil)
	s.Status(err)
	return console.Exit(125)
}
