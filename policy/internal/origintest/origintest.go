// Package origintest has origins for tests of fetches: a RoundTripper, and answers as on the wire.
package origintest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// An Answer answers a request.
type Answer func(*http.Request) (*http.Response, error)

func (a Answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// A Web is a RoundTripper for many origins: it has the answer of each URL, and
// the requests since Fetched was last called.
type Web struct {
	mu       sync.Mutex
	answers  map[string]Answer
	Requests []*http.Request
}

// New returns a Web in which every URL is answered 404.
func New() *Web {
	return &Web{answers: map[string]Answer{}}
}

func (o *Web) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	o.Requests = append(o.Requests, r)
	answer := o.answers[r.URL.String()]
	o.mu.Unlock()
	if answer == nil {
		answer = Raw("HTTP/1.1 404 Not Found\n\n")
	}
	return answer(r)
}

// Serve sets the answer of a URL.
func (o *Web) Serve(url string, answer Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers[url] = answer
}

// Fetched returns the URLs that were requested since it was last called.
func (o *Web) Fetched() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var urls []string
	for _, r := range o.Requests {
		urls = append(urls, r.URL.String())
	}
	o.Requests = nil
	return urls
}

// Last returns the newest request since Fetched was called.
func (o *Web) Last() *http.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.Requests) == 0 {
		return nil
	}
	return o.Requests[len(o.Requests)-1]
}

// Raw answers with a response as on the wire.
func Raw(text string) Answer {
	return func(r *http.Request) (*http.Response, error) {
		return http.ReadResponse(bufio.NewReader(strings.NewReader(text)), r)
	}
}

// Rules answers 200 with a robots.txt.
func Rules(body string) Answer {
	return Raw("HTTP/1.1 200 OK\n\n" + body)
}

// Encoded is Raw with the body compressed, and a header that says so.
func Encoded(text, coding string) Answer {
	head, body, _ := strings.Cut(text, "\n\n")
	return Raw(head + "\nContent-Encoding: " + coding + "\n\n" + compress(coding, body))
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

// Failures are other outcomes of a request, by their names in stories.
var Failures = map[string]Answer{
	"refused": Fails(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}),
	"reset":   Fails(&net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}),
	"tls":     Fails(errors.New("tls: failed to verify certificate: x509: certificate has expired")),

	// Errors of a transport that has not asked the origin.
	"nohost":    Fails(Fault{Text: "nohost", Why: "its name does not resolve", Origin: true}),
	"inward":    Fails(Fault{Text: "prohibited", Why: "the destination is prohibited", Origin: true}),
	"exhausted": Fails(Fault{Text: "exhausted"}),
	"noparent":  Fails(Fault{Text: "noparent", Why: "the parent proxy can't be reached", Kept: true}),

	"panic": func(*http.Request) (*http.Response, error) { panic("a bug in the transport") },
	"silent": func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	},
	"endless": stream(func(p []byte) int { return copy(p, strings.Repeat("#", 4096)) }),
	"trickle": stream(func(p []byte) int { time.Sleep(time.Second); return copy(p, "#") }),
}

// A Fault is an error of a transport that says whether the origin is at fault.
type Fault struct {
	Text, Why    string
	Origin, Kept bool
}

func (f Fault) Error() string       { return f.Text }
func (f Fault) Reason() string      { return f.Why }
func (f Fault) OriginAtFault() bool { return f.Origin }
func (f Fault) Outage() bool        { return f.Kept }

// Fails ends a request with an error.
func Fails(err error) Answer {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// stream answers 200 with a body that has no end.
func stream(fill func([]byte) int) Answer {
	return func(r *http.Request) (*http.Response, error) {
		body := ReaderFunc(func(p []byte) (int, error) {
			if err := r.Context().Err(); err != nil {
				return 0, err
			}
			return fill(p), nil
		})
		start := strings.NewReader("User-agent: *\nDisallow: /private/\n")
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(start, body))}, nil
	}
}

// Late answers at once, but takes a second for the body.
func Late(answer Answer) Answer {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := answer(r)
		body := resp.Body
		resp.Body = io.NopCloser(ReaderFunc(func(p []byte) (int, error) {
			time.Sleep(time.Second)
			return body.Read(p)
		}))
		return resp, err
	}
}

// A ReaderFunc is the Read of a reader.
type ReaderFunc func([]byte) (int, error)

func (f ReaderFunc) Read(p []byte) (int, error) { return f(p) }

// OnlyUserAgent reports headers that a fetch must not carry.
func OnlyUserAgent(r *http.Request) error {
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

// Slow answers after a while.
func Slow(wait time.Duration, answer Answer) Answer {
	return func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(wait):
			return answer(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}
