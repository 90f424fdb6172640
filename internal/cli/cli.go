// Package cli has the commands, one file or a few each; commands.go lists them. The folder help has
// the help of each command, output the templates of their reports.
package cli

// Where to change what.
//
//	a command:
//		a file here, a row in commands.go, its help in help, a heading in docs/commands.md, and a story in
//		testdata/script
//	what check, tags, history and audit print for people:
//		a template in output
//	which requests have a line on the terminal:
//		requestlines.go
//	what doctor checks of a directory of keys:
//		doctor_signing.go
//	what doctor recommends for a client:
//		doctor_clients.go and doctor_browsers.go

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"robotsgate/internal/escape"
	"robotsgate/internal/gate"
)

// Streams are what a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	log *slog.Logger // for what is printed on Err, with log.format: json; nil: it is text
}

// inFormat returns s for a command that runs a gate: with log.format: json it prints JSON on Err.
func (s Streams) inFormat(c *gate.Config) Streams {
	if c.Log.Format == "json" {
		s.log = gate.Logger(c.Log.Format, slog.LevelInfo, s.Err)
	}
	return s
}

// reported returns err, or after it has been printed as JSON the exit status that stands for it.
func (s Streams) reported(err error) error {
	if _, exit := errors.AsType[Exit](err); err == nil || exit || s.log == nil {
		return err
	}
	return Exit(s.Status(err))
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
		if s.log != nil {
			s.log.Error(strings.TrimRight(line, "\r\n"))
			continue
		}
		fmt.Fprintf(s.Err, "robotsgate: %s\n", escape.Printable(strings.TrimRight(line, "\r\n")))
	}
	return 2
}

// warn prints a warning.
func (s Streams) warn(format string, args ...any) {
	if s.log != nil {
		s.log.Warn(fmt.Sprintf(format, args...))
		return
	}
	s.note("warning: "+format, args...)
}

// note prints information.
func (s Streams) note(format string, args ...any) {
	if s.log != nil {
		s.log.Info(fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintf(s.Err, "robotsgate: %s\n", escape.Printable(fmt.Sprintf(format, args...)))
}

// Configured is the option of every command that depends on a configuration.
type Configured struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration file; without one the defaults hold."`
}

func (c Configured) load() (*gate.Config, error) {
	if c.Config == "" {
		return gate.DefaultConfig(), nil
	}
	return gate.LoadConfig(c.Config)
}
