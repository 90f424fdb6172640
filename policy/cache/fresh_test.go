package cache

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// header reads lines as they stand on the wire.
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestLifetime(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	const none = -1
	for _, test := range []struct {
		lines []string
		want  time.Duration
	}{
		{nil, none},
		{[]string{"Cache-Control: public"}, none},
		{[]string{"Cache-Control: max-age=600"}, 10 * time.Minute},
		{[]string{"Cache-Control: Max-Age=600"}, 10 * time.Minute},
		{[]string{"Cache-Control: public,  max-age=600 , immutable"}, 10 * time.Minute},
		{[]string{`Cache-Control: max-age="600"`}, 10 * time.Minute},
		{[]string{"Cache-Control: max-age = 600"}, 10 * time.Minute},
		{[]string{"Cache-Control: max-age=0"}, 0},
		{[]string{"Cache-Control: s-maxage=600"}, none},
		{[]string{"Cache-Control: stale-while-revalidate=600"}, none},
		{[]string{"Cache-Control: max-age=99999999999999999999"}, 10 * 365 * 24 * time.Hour},

		// Of several the smallest; what is invalid is no time at all (RFC 9111, 4.2.1).
		{[]string{"Cache-Control: max-age=600, max-age=60"}, time.Minute},
		{[]string{"Cache-Control: max-age=60", "Cache-Control: max-age=600"}, time.Minute},
		{[]string{"Cache-Control: max-age=soon"}, 0},
		{[]string{"Cache-Control: max-age"}, 0},
		{[]string{"Cache-Control: max-age="}, 0},
		{[]string{"Cache-Control: max-age=-1"}, 0},
		{[]string{"Cache-Control: max-age=1.5"}, 0},
		{[]string{"Cache-Control: max-age=soon, max-age=600"}, 0},

		{[]string{"Cache-Control: no-cache"}, 0},
		{[]string{"Cache-Control: no-store"}, 0},
		{[]string{"Cache-Control: NO-STORE, max-age=600"}, 0},
		{[]string{`Cache-Control: no-cache="Set-Cookie", max-age=600`}, 0},
		{[]string{"Cache-Control: max-age=600", "Cache-Control: no-cache"}, 0},

		{[]string{"Expires: Sat, 01 Jan 2000 01:00:00 GMT"}, time.Hour},
		{[]string{"Expires: Sat, 01 Jan 2000 01:00:00 GMT", "Date: Sat, 01 Jan 2000 00:30:00 GMT"}, 30 * time.Minute},
		{[]string{"Expires: Sat, 01 Jan 2000 01:00:00 GMT", "Date: yesterday"}, time.Hour},
		{[]string{"Expires: Fri, 31 Dec 1999 01:00:00 GMT"}, 0},
		{[]string{"Expires: Saturday, 01-Jan-00 01:00:00 GMT"}, time.Hour},
		{[]string{"Expires: 0"}, 0},
		{[]string{"Expires: -1"}, 0},
		{[]string{"Expires: "}, 0},
		{[]string{"Expires: Fri, 31 Dec 1999 01:00:00 GMT", "Cache-Control: max-age=600"}, 10 * time.Minute},

		{[]string{"Cache-Control: max-age=600", "Age: 60"}, 9 * time.Minute},
		{[]string{"Cache-Control: max-age=600", "Age: 6000"}, 0},
		{[]string{"Cache-Control: max-age=600", "Age: old"}, 10 * time.Minute},
		{[]string{"Expires: Sat, 01 Jan 2000 01:00:00 GMT", "Age: 60"}, 59 * time.Minute},
		{[]string{"Age: 60"}, none},
	} {
		if got := Lifetime(header(test.lines...), now); got != test.want {
			t.Errorf("%q: got %v, want %v", test.lines, got, test.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"120":                           2 * time.Minute,
		" 120 ":                         2 * time.Minute,
		"Sat, 01 Jan 2000 01:00:00 GMT": time.Hour,
		"Fri, 31 Dec 1999 01:00:00 GMT": 0,
		"-1":                            0,
		"1.5":                           0,
		"soon":                          0,
		"18446744073709551616":          10 * 365 * 24 * time.Hour,
	} {
		if got := RetryAfter(header("Retry-After: "+value), now); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
	h := header("Retry-After: Sat, 01 Jan 2000 05:02:00 GMT")
	h.Set("Date", "Sat, 01 Jan 2000 05:00:00 GMT")
	if got := RetryAfter(h, now); got != 2*time.Minute {
		t.Errorf("by a clock that is 5 h ahead: got %v, want 2m", got)
	}
}
