// Package cli has the commands, one file or a few each; commands.go lists them. The folder help has
// the help of each command, output the templates of their reports.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"robotsgate/internal/config"
	"robotsgate/internal/escape"
)

// Streams are what a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// An Exit ends a command with a status and without a message.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Status prints an error, every line of it as "robotsgate: …", and returns the
// process's exit status.
func (s Streams) Status(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[Exit](err); ok {
		return int(exit)
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(s.Err, "robotsgate: %s\n", escape.Printable(strings.TrimRight(line, "\r\n")))
	}
	return 2
}

// warn prints a warning.
func (s Streams) warn(format string, args ...any) { s.note("warning: "+format, args...) }

// note prints information.
func (s Streams) note(format string, args ...any) {
	fmt.Fprintf(s.Err, "robotsgate: %s\n", escape.Printable(fmt.Sprintf(format, args...)))
}

// Configured is the option of every command that depends on a configuration.
type Configured struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration file; without one the defaults hold."`
}

func (c Configured) load() (*config.Config, error) {
	if c.Config == "" {
		return config.Default(), nil
	}
	return config.Load(c.Config)
}
