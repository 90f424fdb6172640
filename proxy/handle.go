package proxy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/canonical"
	"robotsgate/policy/pace"
	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/header"
	"robotsgate/proxy/internal/response"
	"robotsgate/proxy/internal/sign"
)

// An exchange is one request on its way, or a tunnel that is passed through. Only this file changes it:
// the stages are functions in other files, which take values and return their results.
type exchange struct {
	p *Proxy
	inbound
	results
	turn    *pace.Turn // of a request that is sent; nil: there is no pace, or the origin has answered
	upgrade bool       // it is a WebSocket handshake
	out     response.Recorder
	opening *opening // of a tunnel that is passed through; nil: a request
}

// serve handles a request to target, unless refused is the answer already.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, s *Settings, target canonical.Target, refused *answer) {
	x := &exchange{p: p, inbound: newInbound(s, r)}
	if refused != nil {
		x.refuse(r)
	} else {
		x.lead(target)
	}
	p.handle(x, w, r, refused)
}

// passThrough handles a tunnel whose requests cannot be seen. It reports whether the tunnel was opened.
func (p *Proxy) passThrough(o *opening) (opened bool) {
	x := &exchange{p: p, inbound: o.asTunnel(o.whole()), opening: o}
	p.handle(x, o.writer, nil, nil)
	return x.out.Hijacked != nil
}

// refuse answers a request, or a CONNECT, of a crawler before any stage. crawler is nil if it is not known.
func (p *Proxy) refuse(w http.ResponseWriter, in inbound, crawler *policy.Crawler, no *answer) {
	x := &exchange{p: p, inbound: in}
	x.crawler = crawler
	p.handle(x, w, nil, no)
}

// handle is the whole way of a request, from its target to its record. What goes wrong is an answer, as is
// robots.txt: then the stages that follow are left out.
func (p *Proxy) handle(x *exchange, w http.ResponseWriter, r *http.Request, no *answer) {
	x.ID = x.id
	x.out.Begin(w, x.forResponse(), &p.open, p.Silence)
	defer x.finish()
	switch requests := p.requests.Add(1); {
	case no != nil:
	case requests > int64(x.settings.MaxRequests):
		no = tooMany()
	case x.opening != nil:
		no = x.relay(x.context(x.opening.ctx)) // decides, and relays
	default:
		x.forward(x.context(r.Context()), r) // permit: decide; send
	}
	if no != nil {
		x.respond(no)
	}
	if x.body != nil && x.body.Broke {
		x.resetHTTP10()
		panic(http.ErrAbortHandler)
	}
}

// decide is the first half: it ends with the permission to send the request now, or with an answer.
func (x *exchange) decide(ctx context.Context, engine decider) (no *answer) {
	p, in := x.p, &x.inbound
	if x.crawler, no = p.clients.identify(ctx, in.settings.Engine.Crawlers(), senderOf(in)); no != nil {
		return no
	}
	if no = admit(&p.conns, in.conn, x.crawler); no != nil {
		return no
	}
	if no = whileNotReady(p.Ready); no != nil {
		return no
	}
	if no = checkMethod(in); no != nil {
		return no
	}
	decision, err := decide(ctx, in, x.crawler, engine)
	x.decided = time.Since(x.start)
	if err != nil {
		return failure(err, in, nil)
	}
	x.Decision, x.Stated = decision, decision.Stated
	if decision.Denied() {
		return refusal(in, &x.Signals)
	}
	if asksForRobots(in, decision) {
		return robotsTxt(decision.Robots)
	}
	x.turn, x.Paced, no = awaitTurn(ctx, in, decision)
	return no
}

type exchangeKey struct{}

// forward passes a request on. Its URL and Host are those of the target from here on, whatever the client has sent.
func (x *exchange) forward(ctx context.Context, r *http.Request) {
	r = r.WithContext(context.WithValue(ctx, exchangeKey{}, x))
	r.URL, r.Host = x.target.URL(), x.target.Host
	x.p.forwarder.ServeHTTP(&x.out, r)
}

// permit decides about a request. It returns the response if the gate itself answers, and nil if the request
// is to be sent.
func (x *exchange) permit(r *http.Request) *http.Response {
	if no := x.decide(r.Context(), (*policy.Engine).Decide); no != nil {
		resp := x.answer(no)
		x.out.Drain(r, x.p.Limits.HeaderTimeout)
		return resp
	}
	x.upgrade = header.Request(r)
	if agent := x.crawler.UserAgent; agent != "" {
		header.Name(r.Header, agent)
		x.userAgent = agent
	}
	if x.hasBody {
		r.Body = x.out.Receive(r, x.p.Limits.IdleTimeout)
	}
	return nil
}

// send is the second half: it sends the request, reads what the response states, and returns the response.
func (x *exchange) send(r *http.Request) *http.Response {
	p, in := x.p, &x.inbound
	x.sent = time.Since(x.start)
	resp, signed, err := x.roundTrip(r)
	x.upstream, x.signed = time.Since(x.start), signed
	x.reportAnswer(resp)
	if err == nil {
		err = checkResponse(resp, x.upgrade)
	}
	if err != nil {
		return x.answer(failure(err, in, x.out.Upload))
	}
	x.Inspection, x.body = inspector{p.Log, p.Remembered, p.Silence}.inspect(r.Context(), in, x.Decision, resp, &x.out)
	x.Decision = withReserved(in, &x.Signals, resp)
	if x.Decision.Denied() {
		resp.Body.Close() // over HTTP/1 this closes the connection, over HTTP/2 it resets the stream
		return x.answer(refusal(in, &x.Signals))
	}
	maps.Copy(x.out.Header(), resp.Header)
	resp.Header = nil // goproxy would copy it
	response.Annotate(x.out.Header(), &x.Signals)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = response.Switched(resp.Body, &x.out, &body.Relay{Idle: p.Limits.IdleTimeout, Silence: p.Silence, Together: true})
	}
	return resp
}

// relay is the way of a tunnel that is passed through: after one decision for the whole host it is carried unseen. It
// returns the answer if there is no tunnel.
func (x *exchange) relay(ctx context.Context) *answer {
	if no := x.decide(ctx, (*policy.Engine).DecideHost); no != nil {
		return no
	}
	p, o := x.p, x.opening
	host, port, _ := net.SplitHostPort(o.target.Address())
	origin, err := x.settings.Upstream.Dial(ctx, host, port)
	x.reportAnswer(nil) // what comes through the tunnel is not known
	if err != nil {
		return failure(err, &x.inbound, nil)
	}
	defer origin.Close()
	conn, rd, err := o.accept(&x.out, p.Limits.HeaderTimeout)
	if err != nil {
		x.failed = err.Error()
		return nil
	}
	if o.writer == nil {
		x.out.Take(conn)
	}
	_ = conn.SetDeadline(time.Time{})
	x.out.Status = http.StatusOK
	p.conns.MarkTunnel(x.inbound.conn.client)
	p.open.Add(origin)
	defer p.open.Remove(origin)
	tunnel := body.Relay{Idle: p.Limits.IdleTimeout, Silence: p.Silence}
	x.out.Bytes = tunnel.Between(client.Buffered(conn, rd), origin)
	return nil
}

// finish ends a request, also after a panic, and passes its record to Done. A panic costs the request a
// 500, or its connection if the answer has begun, but never the process.
func (x *exchange) finish() {
	cause := recover()
	x.reportAnswer(nil) // by now the origin has answered, or never will
	if cause != nil && !isAbort(cause) {
		x.failed = "internal error"
		x.p.Log.Error("panic while serving a request; please report it", "id", x.id, "origin", x.origin, "panic", cause, "stack", string(debug.Stack()))
		if !x.out.Wrote {
			if x.out.ResponseWriter != nil {
				clear(x.out.Header()) // of an answer that was not sent
			}
			x.respond(internalError(x.id))
			cause = nil
		}
	}
	x.out.End()
	x.out.Release(x.p.Limits.IdleTimeout)
	x.p.requests.Add(-1)
	x.p.Done(recordOf(&x.inbound, &x.results, &x.out))
	if cause != nil {
		panic(http.ErrAbortHandler)
	}
}

// answer returns the gate's own response, and notes the answer for the record. Its header is set on x.out.
func (x *exchange) answer(a *answer) *http.Response {
	x.said, x.failed = a, cmp.Or(a.err, x.failed)
	if a.undecided {
		x.Decision = nil
	}
	if x.Decision != nil && x.Head.State == "" { // else it is that of the response that is withheld
		x.Head = response.Head{State: "skipped", Why: a.skipped()}
	}
	h := http.Header{} // of a redirected connection, whose client could not read an answer
	if x.out.ResponseWriter != nil {
		h = x.out.Header()
	}
	return a.response(&x.inbound, &x.Signals, h)
}

// respond answers where goproxy does not: before it is called, and for tunnels.
func (x *exchange) respond(a *answer) {
	resp := x.answer(a)
	if x.out.ResponseWriter == nil {
		x.out.Discard(resp)
		return
	}
	if x.method == http.MethodConnect && x.conn.tunnel == nil {
		x.conn.client.SetReason(ascii(cmp.Or(a.title, http.StatusText(a.status))))
	}
	x.out.WriteHeader(resp.StatusCode)
	io.Copy(&x.out, resp.Body)
}

// context returns a context for the request. It ends when the client disconnects. The Upstream finds
// in it what passes 1xx responses on.
func (x *exchange) context(ctx context.Context) context.Context {
	// HTTP/1.0 has no 1xx responses. Over HTTP/2 they are not passed on: if the client has
	// disconnected, net/http may read the header map after WriteHeader has returned, and
	// to change the map for the response then could end the process.
	return x.out.Context(ctx, x.http1() && !x.http10())
}

// roundTrip sends a request and waits for the head of its response.
func (x *exchange) roundTrip(r *http.Request) (*http.Response, sign.Signature, error) {
	defer x.out.Arrived()
	r = x.conn.logins.Bind(r)
	if wrapped := x.settings.wrapped[x.crawler]; wrapped != nil {
		return sign.RoundTrip(wrapped, r)
	}
	resp, err := x.settings.Upstream.RoundTrip(r)
	return resp, sign.Signature{}, err
}

// reportAnswer says how the origin has answered, so that others may be sent.
func (x *exchange) reportAnswer(resp *http.Response) {
	if x.turn != nil {
		x.turn.Done(paceResponse(resp))
		x.turn = nil
	}
}

// resetHTTP10 resets the connection of an HTTP/1.0 client whose response broke off: there the
// end of the connection may be the end of the response, so an orderly close would make it look
// complete. In TLS the connection underneath is reset, before crypto/tls sends close_notify.
func (x *exchange) resetHTTP10() {
	if x.http10() {
		x.conn.client.Reset()
	}
}

func isAbort(cause any) bool {
	err, ok := cause.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}
