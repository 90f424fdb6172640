package proxy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
)

const (
	// maxInformational bounds the 1xx responses that an origin may send before its
	// answer.
	maxInformational = 16

	// maxAttempts bounds the connections on which Transport tries one request. Over
	// HTTP/2 an origin can refuse each, and be asked again at once, for ever.
	maxAttempts = 8
)

var errAttempts = errors.New("the origin refuses every connection again")

// An informer looks after a request until its answer comes. It passes 1xx responses
// on, as RFC 9110, 15.2 asks of proxies. They come from Transport's own goroutine:
// once the answer is there, none may go out.
type informer struct {
	w      http.ResponseWriter
	passes bool
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	count int
	tries int
	done  bool
}

// inform lets a request's 1xx responses go to the client. It returns the request
// to send, and what to call when the answer has come.
func inform(w http.ResponseWriter, r *http.Request, cancel context.CancelCauseFunc) (*http.Request, func()) {
	i := &informer{w: w, cancel: cancel}
	// HTTP/1.0 knows none. Over HTTP/2 net/http may still be reading the header
	// map when WriteHeader has returned, if the client has left; to change the map
	// then, for the answer, could end the process.
	i.passes = r.ProtoMajor == 1 && r.ProtoMinor > 0
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: i.pass, GotConn: i.try})
	return r.WithContext(ctx), i.end
}

func (i *informer) end() {
	i.mu.Lock()
	i.done = true
	i.mu.Unlock()
}

func (i *informer) try(httptrace.GotConnInfo) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.tries++; i.tries > maxAttempts {
		i.cancel(errAttempts)
	}
}

func (i *informer) pass(code int, header textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.count++; i.count > maxInformational {
		return errors.New("the origin sends informational responses without end")
	}
	// net/http says 100 itself, when the request's body is asked for.
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
