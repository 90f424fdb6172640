package pace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// from returns a request of a client of one crawler.
func from(client string, interval time.Duration) Request {
	r := to("default", interval)
	r.Client = client
	return r
}

// TestPlaces: when MaxQueue requests wait, a request takes the place of the last one of the crawler with the
// most waiting, or of its crawler's client with the most, so that each finds a place.
func TestPlaces(t *testing.T) {
	many := func(n int, r Request) []Request { return slices.Repeat([]Request{r}, n) }
	for name, test := range map[string]struct {
		requests [][]Request
		want     string // how many wait, of each crawler or client
		refused  string
	}{
		"one crawler":             {[][]Request{many(12, to("a", time.Second))}, "a 10", "a 2"},
		"a crawler after another": {[][]Request{many(12, to("a", time.Second)), many(1, to("b", time.Second))}, "a 9, b 1", "a 3"},
		"two that send many":      {[][]Request{many(12, to("a", time.Second)), many(12, to("b", time.Second))}, "a 5, b 5", "a 7, b 7"},
		"many crawlers": {[][]Request{many(12, to("a", time.Second)), many(1, to("b", 0)), many(1, to("c", 0)), many(1, to("d", 0)),
			many(1, to("e", 0)), many(1, to("f", 0)), many(1, to("g", 0)), many(1, to("h", 0)), many(1, to("i", 0)), many(1, to("j", 0))},
			"a 1, b 1, c 1, d 1, e 1, f 1, g 1, h 1, i 1, j 1", "a 11"},
		"a client after another":             {[][]Request{many(12, from("x", time.Second)), many(1, from("y", time.Second))}, "x 9, y 1", "x 3"},
		"clients share what one crawler has": {[][]Request{many(12, from("x", time.Second)), many(12, to("a", time.Second)), many(2, from("y", time.Second))}, "a 5, x 3, y 2", "a 7, x 9"},
		"many clients and a crawler": {[][]Request{many(1, from("v", time.Second)), many(1, from("w", time.Second)),
			many(12, from("x", time.Second)), many(1, to("a", time.Second))}, "a 1, v 1, w 1, x 7", "x 5"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSchedule(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: time.Hour, MaxQueue: 10})
				s.Observe(to("before", time.Second))
				for _, r := range slices.Concat(test.requests...) {
					s.send(t.Context(), r.Client+strings.TrimPrefix(r.Crawler, "default"), r, ok)
				}
				waiting, refused := map[string]int{}, map[string]int{}
				s.Pacer.mu.Lock()
				for w := range s.origins["http://shop.example:80"].all() {
					waiting[w.request.Client+strings.TrimPrefix(w.request.Crawler, "default")]++
				}
				s.Pacer.mu.Unlock()
				s.mu.Lock()
				for _, e := range s.lines {
					name, why, _ := strings.Cut(e.text, " ")
					if !strings.HasSuffix(why, "full true") {
						t.Errorf("%s: %s", name, why)
					}
					refused[name]++
				}
				s.mu.Unlock()
				if got := counts(waiting); got != test.want {
					t.Errorf("%s wait, want %s", got, test.want)
				}
				if got := counts(refused); got != test.refused {
					t.Errorf("%s were refused, want %s", got, test.refused)
				}
				s.wg.Wait()
			})
		})
	}
}

func counts(all map[string]int) string {
	var texts []string
	for name, n := range all {
		texts = append(texts, fmt.Sprint(name, " ", n))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// TestClientsTakeTurns: the clients of one crawler take turns, and their requests are in order of arrival. So a
// client with many requests does not make those of another too late.
func TestClientsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(Config{CrawlDelay: Obey, MaxDelay: time.Minute, MaxWait: 5 * time.Second, MaxQueue: 1000})
		for _, name := range []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "y0", "y1", "z0"} {
			s.send(t.Context(), name, from(name[:1], time.Second), ok)
		}
		s.wants(t, "0s x0", "0s x6 too late by 6s, interval, full false", "1s x1", "2s y0", "3s z0", "4s x2",
			"5s x3 too late by 3s, interval, full false", "5s x4 too late by 2s, interval, full false", "5s x5 too late by 1s, interval, full false", "5s y1")
	})
}
