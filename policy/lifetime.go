package policy

import (
	"net/http"
	"strings"
	"time"
)

// lifetime reads how long a response says it holds, RFC 9111, 4.2.1; negative
// if it does not say.
func lifetime(h http.Header, now time.Time) time.Duration {
	life := cacheControl(h)
	if life < 0 {
		life = expires(h, now)
	}
	if age, ok := seconds(h.Get("Age")); ok && life > 0 {
		life = max(life-age, 0)
	}
	return life
}

// cacheControl returns the lifetime of that header, RFC 9111, 5.2.2; negative
// if it gives none. Of several the smallest counts, and what can't be read is
// none at all (4.2.1): asking too often is the smaller harm.
func cacheControl(h http.Header) time.Duration {
	life := time.Duration(-1)
	for _, line := range h.Values("Cache-Control") {
		for part := range strings.SplitSeq(line, ",") {
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
	}
	return life
}

// expires returns the lifetime of that header, RFC 9111, 5.3; negative if there
// is none. An invalid date, "0" above all, means already expired.
func expires(h http.Header, now time.Time) time.Duration {
	if len(h.Values("Expires")) == 0 {
		return -1
	}
	t, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(t.Sub(now), 0)
}

// retryAfter reads the header of that name, RFC 9110, 10.2.3; 0 if there is none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if wait, ok := seconds(value); ok {
		return wait
	}
	if t, err := http.ParseTime(value); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// seconds reads a delta-seconds, RFC 9111, 1.2.2; too large a number is a very
// long time, not an error.
func seconds(s string) (time.Duration, bool) {
	const most = 10 * 365 * 24 * 3600
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int(s[i]-'0'), most)
	}
	return time.Duration(n) * time.Second, true
}
