package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"robotsgate/internal/escape"
)

// linesForLog writes records of the log. They do not go by log.level: log.requests and the options
// ask for them.
func linesForLog(log slog.Handler) lineForm {
	write := func(at time.Time, message string, attrs ...slog.Attr) {
		record := slog.NewRecord(at, slog.LevelInfo, message, 0)
		for _, a := range attrs {
			if a.Value.Kind() != slog.KindString || a.Value.String() != "" {
				record.AddAttrs(a)
			}
		}
		_ = log.Handle(context.Background(), record) // as slog.Logger does
	}
	return lineForm{max: 1000, print: func(lines []requestLine, more int) {
		for _, r := range lines {
			message := "request"
			switch {
			case r.refused:
				message = "request refused"
			case r.denied():
				message = "request would be denied"
			}
			write(r.end, message, slog.String("id", r.id), slog.String("crawler", r.crawler), slog.String("client", r.client), slog.String("method", r.method), slog.String("url", r.url),
				slog.Int("status", r.status), slog.Duration("duration", r.duration), slog.String("reason", r.reason), slog.String("cause", r.cause))
		}
		if more > 0 {
			write(time.Now(), "further requests have no line, since there were too many", slog.Int("requests", more))
		}
	}}
}

// Escape sequences for colours (ECMA-48, 8.3.117).
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	normal = "\x1b[0m"
)

// maxShownText bounds the URL and the cause in a line on a terminal, in characters.
const maxShownText = 200

// A lineScreen is a terminal for lines about requests.
type lineScreen struct {
	w       io.Writer
	prefix  string // of every line
	colours bool
}

// newLineScreen returns nil if w is no terminal. The lines are written above the status line.
func newLineScreen(w io.Writer, line *statusLine, prefix string, getenv func(string) string) *lineScreen {
	if _, ok := terminal(w); !ok {
		return nil
	}
	_, ansi := ansiTerminal(w, getenv)
	return &lineScreen{line.above(w), prefix, ansi && getenv("NO_COLOR") == ""} // https://no-color.org
}

// linesForScreen writes lines for a person, at most 1000 a second.
func linesForScreen(s *lineScreen) lineForm {
	paint := func(text, colour string) string {
		if !s.colours {
			return text
		}
		return colour + text + normal
	}
	return lineForm{max: 100, pause: 100 * time.Millisecond, print: func(lines []requestLine, more int) {
		var b []byte
		for _, r := range lines {
			outcome := strconv.Itoa(r.status)
			switch {
			case r.refused:
				outcome = paint("refused", red)
			case r.denied():
				outcome = paint("would be denied", yellow)
			case r.status == 0:
				outcome = "no answer" // the client had disconnected
			}
			b = fmt.Appendf(b, "%s%s  %s", s.prefix, r.end.Format(time.TimeOnly), outcome)
			for _, text := range []string{r.crawler, r.method + " " + r.url, r.cause} {
				if text != "" {
					b = append(append(b, "  "...), shown(text)...)
				}
			}
			b = append(b, '\n')
		}
		if more > 0 {
			b = fmt.Appendf(b, "%sand %d more\n", s.prefix, more)
		}
		_, _ = s.w.Write(b) // all at once: a status line is redrawn after each write
	}}
}

// shown returns text from the network as a terminal may show it.
func shown(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxShownText {
			text = text[:i] + "…"
			break
		}
	}
	return escape.Printable(text)
}
