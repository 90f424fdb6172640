package proxy

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// clientErrors receives what net/http says about connections: mostly clients
// that leave or don't trust the CA.
type clientErrors struct {
	log  *slog.Logger
	said *atomic.Int64 // when the last warning was given, in Unix seconds
}

func (e clientErrors) Write(p []byte) (int, error) {
	msg := strings.TrimSpace(string(p))
	if slices.ContainsFunc(mistrust, func(sign string) bool { return strings.Contains(msg, sign) }) {
		now, last := time.Now().Unix(), e.said.Load()
		if now-last < 60 || !e.said.CompareAndSwap(last, now) {
			return len(p), nil // one client can fail many times a second
		}
		e.log.Warn("a client does not trust the CA; `robotsgate env` prints what to set", "detail", msg)
		return len(p), nil
	}
	if strings.Contains(msg, "panic serving") {
		e.log.Error("panic while serving a connection; please report it", "detail", msg)
		return len(p), nil
	}
	e.log.Debug("client connection", "detail", msg)
	return len(p), nil
}

// mistrust are the alerts by which a client says so. OpenSSL sends its alert in
// clear where the server, which has switched keys, finds only a bad record.
var mistrust = []string{"unknown certificate", "bad certificate", "unknown certificate authority", "bad record MAC"}
