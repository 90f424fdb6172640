package requestlog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"robotsgate/internal/console"
	"robotsgate/internal/logtext"
)

// A Screen is a terminal for lines about requests, and for those of the log.
type Screen struct {
	w      io.Writer
	prefix string // of every line
}

// NewScreen returns nil if w is no terminal.
func NewScreen(w io.Writer, prefix string) *Screen {
	if _, ok := console.Terminal(w); !ok {
		return nil
	}
	return &Screen{w, prefix}
}

// ForScreen writes lines for a person, at most 1000 a second.
func ForScreen(s *Screen) Form {
	return Form{max: 100, pause: 100 * time.Millisecond, print: func(lines []line, more int) {
		var b []byte
		for _, r := range lines {
			outcome := strconv.Itoa(r.status)
			switch {
			case r.refused:
				outcome = "refused"
			case r.denied():
				outcome = "would be denied"
			case r.status == 0:
				outcome = "no answer" // the client had disconnected
			}
			b = fmt.Appendf(b, "%s%s  %s", s.prefix, r.end.Format(time.TimeOnly), outcome)
			for _, text := range []string{r.crawler, r.method + " " + r.url, r.cause} {
				if text != "" {
					b = append(append(b, "  "...), logtext.Short(text)...)
				}
			}
			b = append(b, '\n')
		}
		if more > 0 {
			b = fmt.Appendf(b, "%sand %d more\n", s.prefix, more)
		}
		_, _ = s.w.Write(b)
	}}
}

// Log returns a handler that writes records of a level, and those above it, as lines for a person.
func (s *Screen) Log(level slog.Leveler) slog.Handler { return screenLog{Screen: s, level: level} }

type screenLog struct {
	*Screen
	level slog.Leveler
	attrs []slog.Attr
}

func (l screenLog) Enabled(_ context.Context, level slog.Level) bool {
	return level >= l.level.Level()
}

func (l screenLog) Handle(_ context.Context, r slog.Record) error {
	level := strings.ToLower(r.Level.String())
	if r.Level == slog.LevelWarn {
		level = "warning"
	}
	b := fmt.Appendf(nil, "%s%s  %s  %s", l.prefix, r.Time.Format(time.TimeOnly), level, logtext.Printable(r.Message))
	r.AddAttrs(l.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = fmt.Appendf(b, "  %s: %s", strings.ReplaceAll(a.Key, "_", " "), logtext.Printable(a.Value.Resolve().String()))
		return true
	})
	_, err := l.w.Write(append(b, '\n')) // in one call: lines about requests are written at the same time
	return err
}

func (l screenLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = append(attrs, l.attrs...)
	return l
}

// WithGroup leaves the names as they are: no part has groups.
func (l screenLog) WithGroup(string) slog.Handler { return l }
