package policy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// origins is a RoundTripper for many origins: it has the answer of each URL, and
// the requests so far.
type origins struct {
	mu       sync.Mutex
	answers  map[string]func(*http.Request) (*http.Response, error)
	requests []*http.Request
}

func newOrigins() *origins {
	return &origins{answers: map[string]func(*http.Request) (*http.Response, error){}}
}

func (o *origins) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	o.requests = append(o.requests, r)
	answer := o.answers[r.URL.String()]
	o.mu.Unlock()
	if answer == nil {
		answer = raw("HTTP/1.1 404 Not Found\n\n")
	}
	return answer(r)
}

// serve sets the answer of a URL.
func (o *origins) serve(url string, answer func(*http.Request) (*http.Response, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers[url] = answer
}

// fetched returns the URLs that were requested since it was last called.
func (o *origins) fetched() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var urls []string
	for _, r := range o.requests {
		urls = append(urls, r.URL.String())
	}
	o.requests = nil
	return urls
}

// last returns the newest request since fetched was called.
func (o *origins) last() *http.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.requests) == 0 {
		return nil
	}
	return o.requests[len(o.requests)-1]
}

// raw answers with a response as on the wire.
func raw(text string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return http.ReadResponse(bufio.NewReader(strings.NewReader(text)), r)
	}
}

// rules answers 200 with a robots.txt.
func rules(body string) func(*http.Request) (*http.Response, error) {
	return raw("HTTP/1.1 200 OK\n\n" + body)
}

// encoded is raw with the body compressed, and a header that says so.
func encoded(text, coding string) func(*http.Request) (*http.Response, error) {
	head, body, _ := strings.Cut(text, "\n\n")
	return raw(head + "\nContent-Encoding: " + coding + "\n\n" + compress(coding, body))
}

func compress(coding, body string) string {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	default: // the header is wrong
		return body
	}
	io.WriteString(w, body)
	w.Close()
	return b.String()
}

// failures are other outcomes of a request, by their names in stories.
var failures = map[string]func(*http.Request) (*http.Response, error){
	"refused": fails(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}),
	"reset":   fails(&net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}),
	"tls":     fails(errors.New("tls: failed to verify certificate: x509: certificate has expired")),
	"nohost":  fails(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "example.com", IsNotFound: true}}),
	"inward":  fails(fmt.Errorf("dial: %w", ErrProhibited)),
	"panic":   func(*http.Request) (*http.Response, error) { panic("a bug in the transport") },
	"silent": func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	},
	"endless": stream(func(p []byte) int { return copy(p, strings.Repeat("#", 4096)) }),
	"trickle": stream(func(p []byte) int { time.Sleep(time.Second); return copy(p, "#") }),
}

func fails(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// stream answers 200 with a body that has no end.
func stream(fill func([]byte) int) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		body := readerFunc(func(p []byte) (int, error) {
			if err := r.Context().Err(); err != nil {
				return 0, err
			}
			return fill(p), nil
		})
		start := strings.NewReader("User-agent: *\nDisallow: /private/\n")
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(start, body))}, nil
	}
}

// late answers at once, but takes a second for the body.
func late(answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := answer(r)
		body := resp.Body
		resp.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
			time.Sleep(time.Second)
			return body.Read(p)
		}))
		return resp, err
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// defaults are DefaultRobots with a small cache.
func defaults() Robots {
	r := DefaultRobots()
	r.CacheBytes = 1 << 20
	return r
}

// engineFor returns an engine, which the caller closes: its goroutines must end inside the bubble.
func engineFor(t *testing.T, robots Robots, web http.RoundTripper, s Store, log io.Writer) *Engine {
	t.Helper()
	return engineWith(t, Config{
		Robots: robots, Transport: web, Store: s,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
}

func engineWith(t *testing.T, c Config) *Engine {
	t.Helper()
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// asks returns a request of a crawler that sends this User-Agent.
func asks(t *testing.T, url, userAgent string) Request {
	t.Helper()
	target, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return Request{Target: target, Crawler: &Crawler{Name: "default", Mode: Enforce}, UserAgent: userAgent}
}

// verdict sums up a decision in a few words.
func verdict(d Decision, err error) string {
	switch {
	case errors.Is(err, ErrNoHost):
		return "error nohost"
	case errors.Is(err, ErrProhibited):
		return "error prohibited"
	case errors.Is(err, context.DeadlineExceeded):
		return "error deadline"
	case err != nil:
		return "error other"
	}
	word := "deny"
	if d.Allow {
		word = "allow"
	}
	word += " " + string(d.Reason)
	if d.Robots != nil {
		word += " " + string(d.Robots.State)
	}
	return word
}

// onlyUserAgent reports headers that a fetch must not carry.
func onlyUserAgent(r *http.Request) error {
	names := slices.Sorted(maps.Keys(r.Header))
	for _, name := range names {
		switch name {
		case "User-Agent", "If-None-Match", "If-Modified-Since":
		default:
			return fmt.Errorf("a fetch carries %s: %q", name, r.Header[name])
		}
	}
	return nil
}
