package auth

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// WrongLogins says now and then that a client's login is none.
type WrongLogins struct {
	mu    sync.Mutex
	said  time.Time
	since int // that were not told of
}

func (w *WrongLogins) Report(client netip.Addr, user string, refused bool, log *slog.Logger) {
	others, say := w.count()
	if !say {
		return
	}
	text := "a client's login is wrong, and counts as none"
	if refused {
		text = "a client's login is wrong, and it is refused"
	}
	log.Warn(text, "client", client, "user", user, "others_since_last", others) // which may be slow
}

// count returns how many have not been told of, and whether it is time to do so.
func (w *WrongLogins) count() (others int, say bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.said) < time.Minute {
		w.since++
		return 0, false
	}
	others, w.said, w.since = w.since, time.Now(), 0
	return others, true
}
