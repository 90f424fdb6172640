package auth

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// WrongLogins warns of wrong logins, at most once a minute.
type WrongLogins struct {
	mu       sync.Mutex
	lastWarn time.Time
	unsaid   int // wrong logins since then
}

// Report logs a wrong login, or counts it for the next warning.
func (w *WrongLogins) Report(client netip.Addr, user string, refused bool, log *slog.Logger) {
	w.mu.Lock()
	others := w.unsaid
	due := time.Since(w.lastWarn) >= time.Minute
	if due {
		w.lastWarn, w.unsaid = time.Now(), 0
	} else {
		w.unsaid++
	}
	w.mu.Unlock() // before the log, which may block
	if !due {
		return
	}
	text := "a client's login is wrong, and counts as none"
	if refused {
		text = "a client's login is wrong, and it is refused"
	}
	log.Warn(text, "client", client, "user", user, "others_since_last", others)
}
