package proxy

import (
	"log/slog"
	"strings"
)

// clientErrors receives what net/http says about connections: mostly of clients
// that leave.
type clientErrors struct {
	log      *slog.Logger
	mistrust *mistrust
}

func (e clientErrors) Write(p []byte) (int, error) {
	msg := strings.TrimSpace(string(p))
	if strings.Contains(msg, "panic serving") {
		e.log.Error("panic while serving a connection; please report it", "detail", msg)
		return len(p), nil
	}
	e.log.Debug("client connection", "detail", msg)
	return len(p), nil
}
