package proxy

import (
	"log/slog"
	"strings"
)

// serverLog logs the errors of net/http's servers, most of which are of clients that disconnect.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	if strings.Contains(text, "panic serving") {
		l.log.Error("panic while serving a connection; please report it", "detail", text)
	} else {
		l.log.Debug("client connection", "detail", text)
	}
	return len(p), nil
}
