package response

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"

	"robotsgate/proxy/internal/header"
)

// MaxInformational bounds the 1xx responses that an origin may send before its response.
const MaxInformational = 16

// informational passes 1xx responses on to the client, as RFC 9110, section 15.2 requires of
// proxies. [http.Transport] delivers them in another goroutine, so they must not be written
// after the response has arrived.
type informational struct {
	w      http.ResponseWriter
	passes bool // the client can receive them
	trace  httptrace.ClientTrace

	mu    sync.Mutex
	count int
	done  bool
}

// Context returns a context with which an Upstream passes 1xx responses to the client. passes is false if the client
// cannot receive them: then Transport drops them, within its bound on the bytes of a head.
func (w *Recorder) Context(ctx context.Context, passes bool) context.Context {
	i := &w.informational
	if i.w, i.passes = w, passes; !passes {
		return ctx
	}
	i.trace.Got1xxResponse = i.pass
	return httptrace.WithClientTrace(ctx, &i.trace)
}

// Arrived is called when the origin's response has arrived, or the request has failed.
func (w *Recorder) Arrived() {
	w.informational.mu.Lock()
	w.informational.done = true
	w.informational.mu.Unlock()
}

// sendContinue sends 100 Continue to a client that waits for it before it sends its body. net/http
// would send it at the first Read of the body, and might write at the same time as pass.
func (i *informational) sendContinue() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.passes && !i.done {
		i.w.WriteHeader(http.StatusContinue)
	}
}

// pass writes one 1xx response. After an error the request is given up.
func (i *informational) pass(code int, fields textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.count++; i.count > MaxInformational {
		return errors.New("the origin sends too many informational responses")
	}
	// The gate sends 100 Continue itself, when the request's body is needed.
	if i.done || code == http.StatusContinue || code == http.StatusSwitchingProtocols {
		return nil
	}
	h := http.Header(maps.Clone(fields))
	header.Response(h)
	out := i.w.Header()
	maps.Copy(out, h)
	i.w.WriteHeader(code)
	clear(out)
	return nil
}
