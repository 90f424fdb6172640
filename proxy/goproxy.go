package proxy

import (
	"log/slog"
	"net/http"

	"github.com/elazarl/goproxy"
)

// This file is the only one that touches goproxy. What goproxy does: it calls permit and send for each
// request, and passes the response on with its trailers. What it must be kept from, and why:
//
//   - CONNECT. In its own loop for tunnels a panic ends the process, a client that disconnects does not cancel
//     its request, and headers have no bound. connect.go opens tunnels, and their requests come here one by one.
//   - A response that is replaced in OnResponse loses its Content-Length, and OnResponse sees the gate's own
//     answers too. So what is done to a response is done in the RoundTripper, which never fails: goproxy would
//     answer an error with a 500 and the error's text.
//   - Hop-by-hop fields: it drops some of them, and Accept-Encoding, from requests, and none from responses.
//     KeepHeader switches that off; package header removes them all.
//   - It copies a response's header field by field, which takes an allocation for each. So send moves the header to
//     the ResponseWriter, and KeepDestinationHeaders keeps it there.
//   - io.Copy to a ResponseWriter with ReadFrom costs one more write for each small body: the recorder has none.
//   - It does not flush bodies of unknown length, and closes bodies twice: stream takes care of both.
//   - A response that breaks off ends as a complete one: handle breaks off the client's connection.
//   - After a switch of protocols it relays without an idle limit: inspect hides the Upgrade from it, and
//     switched relays.

// newForwarder returns a handler that passes requests on with goproxy. Their contexts have the exchange.
func newForwarder(log *slog.Logger) http.Handler {
	g := goproxy.NewProxyHttpServer()
	g.KeepHeader, g.KeepDestinationHeaders = true, true
	g.Logger = slog.NewLogLogger(log.Handler(), slog.LevelDebug) // records of requests have the same
	g.OnRequest().DoFunc(func(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		x := r.Context().Value(exchangeKey{}).(*exchange)
		if resp := x.permit(r); resp != nil {
			return r, resp
		}
		ctx.RoundTripper = goproxy.RoundTripperFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
			return x.send(r), nil
		})
		return r, nil
	})
	return g
}
