package snapshot

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/internal/origintest"
)

// short is the error of a RoundTripper when the gate's machine has no descriptor left.
func short(*http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%w: %w", ErrExhausted, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EMFILE})
}

// TestExhausted: a lack of resources on the gate's machine says nothing about an origin. It is not
// kept, is no outage, and the next request fetches again at once, also after a redirect.
func TestExhausted(t *testing.T) {
	for name, serve := range map[string]func(*origintest.Web, func(*http.Request) (*http.Response, error)){
		"at once": func(web *origintest.Web, f func(*http.Request) (*http.Response, error)) { web.Serve(example, f) },
		"behind a redirect": func(web *origintest.Web, f func(*http.Request) (*http.Response, error)) {
			web.Serve(example, raw("HTTP/1.1 301 Moved\nLocation: https://www.example.com/robots.txt\n\n"))
			web.Serve("https://www.example.com/robots.txt", f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, disk := newOrigins(), newDurable()
				serve(web, short)
				e := engineFor(t, defaults(), web, disk, io.Discard)
				r := asks(t, "https://example.com/", "Bot/1.0")
				refused := func(when string) {
					t.Helper()
					if d, err := e.Decide(t.Context(), r); !errors.Is(err, ErrExhausted) {
						t.Errorf("%s: got %+v, %v", when, d, err)
					}
					if all := outagesOf(e); len(all) > 0 {
						t.Errorf("%s: outages %q", when, all)
					}
				}
				decided := func(when, want string) {
					t.Helper()
					if got := verdict(e.Decide(t.Context(), r)); got != want {
						t.Errorf("%s: got %q, want %q", when, got, want)
					}
				}
				refused("first")
				time.Sleep(time.Minute) // fake clock
				if set, known := e.Known(t.Context(), Query{Scope: Scope{Origin: "https://example.com"}, UserAgent: "robotsgate/0"}); known {
					t.Errorf("it is known that %+v", set.Last)
				}
				if _, stored := disk.Load(t.Context(), "https://example.com"); stored {
					t.Error("it is stored")
				}
				serve(web, rules("User-agent: *\nDisallow: /\n"))
				decided("without a wait", "deny rule fresh")

				time.Sleep(25 * time.Hour) // fake clock: what is known has to be fetched anew
				serve(web, short)
				refused("later")
				if set, _ := e.Known(t.Context(), Query{Scope: Scope{Origin: "https://example.com"}, UserAgent: "robotsgate/0"}); set.Last == nil || !set.Last.good() {
					t.Errorf("the last answer is %+v", set.Last)
				}
				serve(web, rules("User-agent: *\nAllow: /\n"))
				decided("in the end", "allow rule fresh")
			})
		})
	}
}
