package requestlog

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// A length is a time that JSON has in seconds, as the audit log does, and text with its unit.
type length time.Duration

func (l length) String() string { return time.Duration(l).String() }

// MarshalJSON returns the seconds.
func (l length) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(l).Seconds()) }

// ForLog writes records of the log. They do not go by log.level: log.requests and the options
// ask for them.
func ForLog(log slog.Handler) Form {
	write := func(at time.Time, message string, attrs ...slog.Attr) {
		record := slog.NewRecord(at, slog.LevelInfo, message, 0)
		for _, a := range attrs {
			if a.Value.Kind() != slog.KindString || a.Value.String() != "" {
				record.AddAttrs(a)
			}
		}
		_ = log.Handle(context.Background(), record) // as slog.Logger does
	}
	return Form{max: 1000, print: func(lines []line, more int) {
		for _, r := range lines {
			message := "request"
			switch {
			case r.refused:
				message = "request refused"
			case r.denied():
				message = "request would be denied"
			}
			write(r.end, message, slog.String("id", r.id), slog.String("crawler", r.crawler), slog.String("client", r.client), slog.String("method", r.method), slog.String("url", r.url),
				slog.Int("status", r.status), slog.Any("duration", length(r.duration)), slog.String("reason", r.reason), slog.String("cause", r.cause))
		}
		if more > 0 {
			write(time.Now(), "further requests have no line, since there were too many", slog.Int("requests", more))
		}
	}}
}
