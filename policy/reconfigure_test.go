package policy

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestReconfigured: new settings decide at once, by answers that were fetched under the old ones.
// Fetches that were begun under the old settings end under them.
func TestReconfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOrigins()
		web.Serve("https://example.com/robots.txt", raw("HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /private"))
		web.Serve("https://many.example/robots.txt", raw("HTTP/1.1 429 Too Many Requests\n\n"))
		old := engineFor(t, defaults(), web, io.Discard)
		decide := func(e *Engine, url string) string {
			t.Helper()
			d, err := e.Decide(t.Context(), asks(t, url, "ExampleBot/1.0"))
			return verdict(d, err)
		}
		if got := decide(old, "https://example.com/private"); got != "deny rule fresh" {
			t.Fatalf("before: %s", got)
		}
		if got := decide(old, "https://many.example/"); got != "deny unreachable unreachable" {
			t.Fatalf("before: %s", got)
		}
		robots := defaults()
		robots.TooManyRequests = "allow"
		robots.MaxBytes = 10 // of no effect, else the rules would be gone
		other := newOrigins()
		next := old.Reconfigured(Config{
			Robots: robots, Transport: other,
			Overrides: []Override{{Hosts: hosts(t, "example.com"), Paths: []string{"/private/open"}, Action: Allow, Reason: "agreed"}},
		})
		web.Fetched()
		for url, want := range map[string]string{
			"https://example.com/private":      "deny rule fresh",
			"https://example.com/private/open": "allow override",
			"https://many.example/":            "allow unavailable unavailable",
		} {
			if got := decide(next, url); got != want {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
		}
		if got := decide(old, "https://example.com/private/open"); got != "deny rule fresh" {
			t.Errorf("by the old settings: %s", got)
		}
		if got := decide(next, "https://new.example/"); got != "allow unavailable unavailable" || !slices.Equal(other.Fetched(), []string{"https://new.example/robots.txt"}) {
			t.Errorf("a new origin: %s", got)
		}
		if got := web.Fetched(); len(got) > 0 {
			t.Errorf("the old transport was used for %v", got)
		}

		// All requests wait for one fetch, of whichever engine.
		web.Serve("https://slow.example/robots.txt", func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second) // fake clock
			return raw("HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /")(r)
		})
		first := make(chan string, 1)
		go func() { first <- decide(old, "https://slow.example/") }()
		synctest.Wait()
		if got := decide(next, "https://slow.example/"); got != "deny rule fresh" || <-first != got {
			t.Errorf("one fetch for both: %s", got)
		}
		if got := len(other.Fetched()); got != 0 {
			t.Errorf("%d fetches beside the one that was under way", got)
		}
	})
}
