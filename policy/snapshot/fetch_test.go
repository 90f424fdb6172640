package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/policy/internal/origintest"
)

// TestBounds: only a little of an origin's long fields is kept.
func TestBounds(t *testing.T) {
	long := strings.Repeat("long", 100_000)
	for name, text := range map[string]string{
		"Location":      "HTTP/1.1 302 Found\nLocation: /" + long + "\n\n",
		"odd Location":  "HTTP/1.1 302 Found\nLocation: http://" + long[:1500] + "/%\n\n",
		"ETag":          "HTTP/1.1 200 OK\nETag: \"" + long + "\"\nLast-Modified: " + long + "\n\n",
		"coding":        "HTTP/1.1 200 OK\nContent-Encoding: " + long + "\n\nx",
		"body of a 404": "HTTP/1.1 404 Not Found\n\n" + long,
		"body of a 500": "HTTP/1.1 500 Oops\n\n" + long,
	} {
		web := newOrigins()
		web.Serve(example, raw(text))
		f := fetcher{transport: web, settings: new(defaults())}
		s, file, err := f.fetch(t.Context(), Scope{}, example, "Bot/1.0", &entry{})
		if err != nil {
			t.Fatal(err)
		}
		n := s.size()
		if file != nil {
			n += len(file.Body())
		}
		if n > 1000 {
			t.Errorf("%s: %d bytes are kept", name, n)
		}
	}
}

// TestLimit reads a body no further than MaxBytes needs, also one that grows
// when it is decoded.
func TestLimit(t *testing.T) {
	line := "# " + strings.Repeat("x", 97) + "\n"
	for _, coding := range []string{"", "gzip", "deflate", "br", "zstd"} {
		text := "HTTP/1.1 200 OK\n\nUser-agent: *\nDisallow: /a\n" + strings.Repeat(line, 10_000) + "Disallow: /b\n"
		answer := raw(text)
		if coding != "" {
			answer = origintest.Encoded(text, coding)
		}
		r := defaults()
		read := 0
		f := fetcher{settings: &r, transport: origintest.Answer(func(req *http.Request) (*http.Response, error) {
			resp, err := answer(req)
			body := resp.Body
			resp.Body = io.NopCloser(origintest.ReaderFunc(func(p []byte) (int, error) {
				n, err := body.Read(p)
				read += n
				return n, err
			}))
			return resp, err
		})}
		s, file, err := f.fetch(t.Context(), Scope{}, example, "", &entry{})
		if err != nil {
			t.Fatal(err)
		}
		if !s.Cut || int64(len(file.Body())) > r.MaxBytes || int64(len(file.Body())) < r.MaxBytes-int64(len(line)) || !strings.HasSuffix(file.Body(), "\n") {
			t.Errorf("%q: got %d bytes, cut %v", coding, len(file.Body()), s.Cut)
		}
		if s.SHA256 != Digest(file.Body()) {
			t.Errorf("%q: the digest is not that of what is parsed", coding)
		}
		if int64(read) > r.MaxBytes+64<<10 {
			t.Errorf("%q: %d bytes were read", coding, read)
		}
	}
}

// TestTimeout: the timeout is for the whole fetch, including redirects.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := defaults()
		start, hops := time.Now(), 0
		f := fetcher{settings: &r, transport: origintest.Answer(func(req *http.Request) (*http.Response, error) {
			if hops++; hops == 4 {
				return origintest.Failures["silent"](req)
			}
			time.Sleep(3 * time.Second) // fake clock
			return raw("HTTP/1.1 302 Found\nLocation: /\n\n")(req)
		})}
		s, _, err := f.fetch(t.Context(), Scope{}, example, "", &entry{})
		if err != nil || s.Status != 0 || !strings.Contains(s.Error, "within robots.timeout") {
			t.Errorf("got %+v, %v", s, err)
		}
		if took := time.Since(start); took != r.Timeout {
			t.Errorf("took %v, want %v", took, r.Timeout)
		}
	})
}

// TestBodiesAreClosed for every kind of answer.
func TestBodiesAreClosed(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\n\nUser-agent: *\n",
		"HTTP/1.1 200 OK\nContent-Encoding: odd\n\nx",
		"HTTP/1.1 302 Found\nLocation: /x\n\n",
		"HTTP/1.1 302 Found\n\n",
		"HTTP/1.1 404 Not Found\n\nbody",
		"HTTP/1.1 500 Oops\n\nbody",
	} {
		open := 0
		f := fetcher{settings: new(defaults()), transport: origintest.Answer(func(req *http.Request) (*http.Response, error) {
			resp, err := raw(text)(req)
			open++
			resp.Body = closer{resp.Body, func() { open-- }}
			return resp, err
		})}
		f.fetch(t.Context(), Scope{}, example, "", &entry{})
		if open != 0 {
			t.Errorf("%q: %d bodies are left open", text, open)
		}
	}
}

type closer struct {
	io.Reader
	close func()
}

func (c closer) Close() error { c.close(); return nil }

// TestReason: refusals and the log have readable errors, in the words of the transport if it has some.
func TestReason(t *testing.T) {
	f := fetcher{}
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{dead, errors.New("whatever"), "no complete answer within robots.timeout"},
		{t.Context(), io.ErrUnexpectedEOF, "the answer was cut short"},
		{t.Context(), io.EOF, "the origin closed the connection without an answer"},
		{t.Context(), errors.New("tls: no"), "tls: no"},
		{dead, fmt.Errorf("sent: %w", origintest.Fault{Text: "odd", Why: "the parent proxy can't be reached"}), "the parent proxy can't be reached"},
	} {
		if got := f.reason(test.ctx, test.err); got != test.want {
			t.Errorf("%v: got %q, want %q", test.err, got, test.want)
		}
	}
}

// TestLargeBodies: a bounded number of large files is read at once, and small ones don't wait.
func TestLargeBodies(t *testing.T) {
	for maxBytes, want := range map[int]int{512 << 10: 128, 1 << 20: 64, 1 << 30: 1} { // 64 MiB
		if got := cap(newLarge(maxBytes)); got != want {
			t.Errorf("%d large files of %d bytes are read at once, want %d", got, maxBytes, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := defaults()
		var large, most atomic.Int64
		f := fetcher{settings: &r, large: make(chan struct{}, 2), transport: origintest.Answer(func(req *http.Request) (*http.Response, error) {
			left := 2 * smallBody
			if req.URL.Host == "small.example" {
				left = smallBody / 2
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(origintest.ReaderFunc(func(p []byte) (int, error) {
				if left == 0 {
					return 0, io.EOF
				}
				if req.URL.Host != "small.example" && left <= smallBody {
					most.Store(max(most.Load(), large.Add(1)))
					time.Sleep(time.Second) // fake clock
					large.Add(-1)
				}
				n := copy(p, strings.Repeat("#", min(left, 1000)))
				left -= n
				return n, nil
			}))}, nil
		})}
		r.Timeout = time.Hour
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_, file, err := f.fetch(t.Context(), Scope{}, fmt.Sprintf("https://%d.example/robots.txt", i), "", &entry{})
				if err != nil || len(file.Body()) != 2*smallBody {
					t.Errorf("a large one: %d bytes, %v", len(file.Body()), err)
				}
			})
		}
		all.Go(func() {
			time.Sleep(time.Second / 2) // fake clock: by then the large ones wait for each other
			if _, _, err := f.fetch(t.Context(), Scope{}, "https://small.example/robots.txt", "", &entry{}); err != nil || large.Load() == 0 {
				t.Errorf("a small one had to wait: %v", err)
			}
		})
		all.Wait()
		if most.Load() != 2 {
			t.Errorf("%d large ones at once, want 2", most.Load())
		}

		f.large <- struct{}{}
		f.large <- struct{}{}
		r.Timeout = time.Second
		if s, _, err := f.fetch(t.Context(), Scope{}, "https://late.example/robots.txt", "", &entry{}); !errors.Is(err, ErrBusy) {
			t.Errorf("one that never gets a place: %+v, %v", s, err)
		}
		<-f.large
		<-f.large
	})
}
