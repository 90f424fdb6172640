package gate

import (
	"bytes"
	"io"
	stdlog "log"
	"log/slog"

	"robotsgate/internal/logtext"
	"robotsgate/internal/requestlog"
)

// redirectStdLog sends the lines of package log to log, at debug level. net/http's Transport
// writes there and has no option for another logger. This changes the whole process, so
// only commands that run a gate call it.
func redirectStdLog(log *slog.Logger) {
	stdlog.SetFlags(0)
	stdlog.SetOutput(lineWriter{slog.NewLogLogger(log.Handler(), slog.LevelDebug).Writer(), withoutQuote})
}

// withoutQuote removes the bytes after a response that net/http's Transport quotes. A parent
// proxy may repeat a request in them, with the login of egress.proxy.
func withoutQuote(line []byte) []byte {
	text, _, _ := bytes.Cut(line, []byte(" starting with "))
	return text
}

// Logger returns the logger for a log.format. Text from the network must stay visible and
// within its line: slog's text format quotes it, and logtext.JSON escapes what slog's JSON
// does not.
func Logger(format string, level slog.Leveler, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(lineWriter{w, logtext.JSON}, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// logger returns the gate's log. On a terminal its lines look like those about requests.
func (g *Gate) logger() *slog.Logger {
	if g.onScreen() {
		return slog.New(g.options.Screen.Log(g.level))
	}
	return Logger(g.config.Log.Format, g.level, g.options.Err)
}

func (g *Gate) onScreen() bool { return g.options.Screen != nil && g.config.Log.Format != "json" }

// A lineWriter changes lines, of which it gets one in each call.
type lineWriter struct {
	io.Writer
	change func(line []byte) []byte
}

func (w lineWriter) Write(line []byte) (int, error) {
	if _, err := w.Writer.Write(w.change(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// showRequests begins to write lines about requests, as [Options] say. If the log has to be JSON, so
// have they.
func (g *Gate) showRequests() {
	o := g.options
	if o.Requests == nil {
		return
	}
	form := requestlog.ForLog(g.log.Handler())
	if g.onScreen() {
		form = requestlog.ForScreen(o.Screen)
	}
	g.lines = requestlog.New(form)
	g.lines.Use(o.Requests(g.config))
}
