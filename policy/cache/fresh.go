package cache

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Lifetime returns how long a response is fresh, RFC 9111, 4.2.1; negative
// if it does not say.
func Lifetime(h http.Header, now time.Time) time.Duration {
	life := cacheControl(h)
	if life < 0 {
		life = expires(h, now)
	}
	if text := h.Get("Age"); text != "" && life > 0 {
		age, _ := seconds(text)
		life = max(life-age, 0)
	}
	return life
}

// cacheControl returns the lifetime in that header, RFC 9111, 5.2.2; negative
// if it has none. The smallest of several counts. An invalid one is zero (4.2.1), since
// fetching too often is the smaller harm.
func cacheControl(h http.Header) time.Duration {
	life := time.Duration(-1)
	for part := range strings.SplitSeq(strings.Join(h["Cache-Control"], ","), ",") { // a list (RFC 9110, 5.6.1)
		name, value, _ := strings.Cut(part, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-cache", "no-store":
			return 0
		case "max-age":
			age, _ := seconds(strings.Trim(value, "\" \t"))
			if life < 0 || age < life {
				life = age
			}
		}
	}
	return life
}

// expires returns the lifetime in that header, RFC 9111, 5.3; negative if there
// is none. An invalid date, such as the common "0", means already expired.
func expires(h http.Header, now time.Time) time.Duration {
	if len(h.Values("Expires")) == 0 {
		return -1
	}
	t, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	return max(t.Sub(sent(h, now)), 0)
}

// sent returns when a response was sent, by the clock of its origin if it says so.
func sent(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now
}

// RetryAfter returns the wait in that header, RFC 9110, 10.2.3; 0 if there is none.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0 // the errors of parsing it would take more time than the rest of the header
	}
	wait, ok := seconds(value)
	if t, err := http.ParseTime(value); !ok && err == nil {
		wait = max(t.Sub(sent(h, now)), 0)
	}
	return wait
}

// seconds parses a delta-seconds, RFC 9111, 1.2.2. A number that is too large means a very
// long time, and is not an error.
func seconds(s string) (time.Duration, bool) {
	const most = 10 * 365 * 24 * 3600
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32)
	return time.Duration(min(n, most)) * time.Second, err == nil || errors.Is(err, strconv.ErrRange)
}
