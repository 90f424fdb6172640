// Package console has what commands read and write: their streams, messages, exit statuses, progress and reports.
package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"robotsgate/internal/logtext"
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
		fmt.Fprintf(s.Err, "robotsgate: %s\n", logtext.Printable(strings.TrimRight(line, "\r\n")))
	}
	return 2
}

// Warn prints a warning.
func (s Streams) Warn(format string, args ...any) {
	s.Note("warning: "+format, args...)
}

// Note prints information.
func (s Streams) Note(format string, args ...any) {
	fmt.Fprintf(s.Err, "robotsgate: %s\n", logtext.Printable(fmt.Sprintf(format, args...)))
}

// JSON writes v as one line of JSON, without escapes for HTML.
func JSON(w io.Writer, v any) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(logtext.JSON(line.Bytes()))
	return err
}

// UTC returns a time as reports show it.
func UTC(t time.Time) string { return t.UTC().Format(time.DateTime) }

// Date returns the date of a time as reports show it.
func Date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Plural returns a number with a word, such as 1 line or 2 lines.
func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
