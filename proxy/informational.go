package proxy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"

	"robotsgate/proxy/internal/memory"
)

// maxInformational bounds the 1xx responses that an origin may send before its
// answer.
const maxInformational = 16

// An informer passes 1xx responses on, as RFC 9110, 15.2 asks of proxies. By Transport
// they come in a goroutine of its own: once the answer is there, none may go out.
type informer struct {
	w      http.ResponseWriter
	passes bool

	mu    sync.Mutex
	count int
	done  bool
}

// forOrigin returns a request's context with what the Upstream finds in it: the memory of the client, and what
// passes 1xx responses on.
func (x *exchange) forOrigin(r *http.Request) context.Context {
	// HTTP/1.0 has no 1xx responses. Over HTTP/2 net/http may still be reading the header
	// map when WriteHeader has returned, if the client has left; to change the map
	// then, for the answer, could end the process.
	x.informer.w, x.informer.passes = x.out, r.ProtoMajor == 1 && r.ProtoMinor > 0
	ctx := memory.NewContext(r.Context(), &x.out.memory)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: x.informer.pass})
}

// end is called when the answer has come.
func (i *informer) end() {
	i.mu.Lock()
	i.done = true
	i.mu.Unlock()
}

// proceed tells a client that waits for it to send its body. Net/http would do so at
// the first Read, which is another of Transport's goroutines: in the middle of what
// the origin informs of.
func (i *informer) proceed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.passes && !i.done {
		i.w.WriteHeader(http.StatusContinue)
	}
}

func (i *informer) pass(code int, header textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.count++; i.count > maxInformational {
		return errors.New("the origin sends informational responses without end")
	}
	// The gate says 100 itself, when the request's body is asked for.
	if i.done || !i.passes || code == http.StatusContinue || code == http.StatusSwitchingProtocols {
		return nil
	}
	h := http.Header(maps.Clone(header))
	dropHopByHop(h)
	dropOwn(h)
	delete(h, "Alt-Svc")
	out := i.w.Header()
	maps.Copy(out, h)
	i.w.WriteHeader(code)
	clear(out)
	return nil
}
