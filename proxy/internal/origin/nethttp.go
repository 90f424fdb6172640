package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"robotsgate/proxy/internal/memory"
)

// A netHTTP sends requests by net/http's Transport, which can send all of them.
type netHTTP struct {
	large    *http.Transport // with largeWindow
	small    *http.Transport // with smallWindow; may be the same
	patience time.Duration   // until the head of the response, attempts and all

	// answeredByParent returns an error if the response to a request in clear is the parent's own; nil: there is no
	// parent that answers such requests.
	answeredByParent func(*http.Response) error
}

// maxAttempts bounds the new connections on which Transport tries one request. An origin
// over HTTP/2 can refuse each, and would be asked again at once, for ever.
const maxAttempts = 8

var (
	errAttempts = errors.New("the origin refuses every connection again")
	errNoAnswer = fmt.Errorf("the origin did not answer: %w", os.ErrDeadlineExceeded)
)

// RoundTrip waits for the head of the response as long as Transport may take for one attempt, since in
// HTTP/2 it makes another if a stream is refused. The memory for it is taken from the reservation in the
// request's context.
func (s *netHTTP) RoundTrip(req *http.Request) (*http.Response, error) {
	t := s.large
	secure := req.URL.Scheme == "https" // it may be HTTP/2
	if secure {
		reserved := memory.FromContext(req.Context())
		if !reserved.Take(uploadCost(req.ContentLength), memory.ForProgress) {
			return nil, memory.ErrLimit
		}
		if !reserved.Take(largeWindow, memory.ForBuffers) {
			t = s.small
		}
	}
	ctx, cancel := context.WithCancelCause(req.Context()) // ends with that one: the response's body needs it
	limit := newAnswerLimit(s.patience, func() { cancel(errNoAnswer) })
	defer limit.stop()
	traced := ctx
	if secure {
		traced = boundAttempts(ctx, cancel)
	}
	out := onlyHTTP1(req.WithContext(traced))
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = &limitedBody{req.Body, limit}
	}
	resp, err := s.via(t, out)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && req.Context().Err() == nil {
			err = cause // HTTP/2 does not say it
		}
		cancel(nil)
		return nil, err
	}
	return resp, nil
}

// via sends a request by a Transport. A 407 of the parent is not the origin's (RFC 9110, 15.5.8), and must not
// be taken for an origin without a robots.txt.
func (s *netHTTP) via(t *http.Transport, req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTrip(req)
	if err != nil || req.URL.Scheme != "http" || s.answeredByParent == nil {
		return resp, err
	}
	if err := s.answeredByParent(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func (s *netHTTP) CloseIdleConnections() {
	s.large.CloseIdleConnections()
	s.small.CloseIdleConnections()
}

// boundAttempts returns a context that lets Transport make only so many attempts.
func boundAttempts(ctx context.Context, cancel context.CancelCauseFunc) context.Context {
	var attempts atomic.Int64
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if !info.Reused { // kept ones may all be gone by now; there are only so many
				attempts.Add(1)
			}
		},
		// Before the next is dialled: one that is given up by then has been dialled all the same.
		GetConn: func(string) {
			if attempts.Load() >= maxAttempts {
				cancel(errAttempts)
			}
		},
	})
}

// uploadCost returns what the buffer takes, in bytes, with which Transport sends a body of this length over
// HTTP/2 (-1: unknown). It is as long as the largest frame that the origin takes, up to 512 KiB. The
// 16 KiB that every origin takes (RFC 9113, 6.5.2) are free.
func uploadCost(length int64) int64 {
	const free, most = 16 << 10, 512 << 10
	if length < 0 {
		length = most
	}
	return max(0, min(length, most)-free)
}

// An answerLimit bounds the time until the head of a response. While the client sends its request's body,
// the time has not begun.
type answerLimit struct {
	limit time.Duration

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

func newAnswerLimit(limit time.Duration, end func()) *answerLimit {
	return &answerLimit{limit: limit, timer: time.AfterFunc(limit, end)}
}

// pause holds the time, until restart lets all of it begin again.
func (l *answerLimit) pause() { l.timer.Stop() }

func (l *answerLimit) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.timer.Reset(l.limit)
	}
}

func (l *answerLimit) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.timer.Stop()
}

// A limitedBody is a request's body, while which is read the time for the answer does not run.
type limitedBody struct {
	io.ReadCloser
	limit *answerLimit
}

func (b *limitedBody) Read(p []byte) (int, error) {
	b.limit.pause()
	defer b.limit.restart()
	return b.ReadCloser.Read(p)
}
