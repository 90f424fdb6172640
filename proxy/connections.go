package proxy

import (
	"errors"
	"net/http"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/memory"
)

// Connections are counts of client connections.
type Connections struct {
	Open    int
	Tunnels int // how many of the open ones are CONNECT tunnels
	// Rejected counts the connections beyond a limit, by the name of the limit.
	Rejected map[string]int64
}

// Connections counts the connections of clients.
func (p *Proxy) Connections() (c Connections) {
	c.Open, c.Tunnels, c.Rejected = p.conns.Counts()
	return c
}

type clientKey struct{}

// clientOf returns the client's connection that a request arrived on, also through a tunnel.
func clientOf(r *http.Request) *client.Conn {
	c, _ := connOf(r)
	return c
}

// connOf also reports whether the request arrived through a tunnel.
func connOf(r *http.Request) (c *client.Conn, tunnelled bool) {
	if t, ok := r.Context().Value(tunnelKey{}).(*tunnel); ok {
		return t.client, true
	}
	return r.Context().Value(clientKey{}).(*client.Conn), false
}

// disconnectOf returns the detector of a request's connection, nil for HTTP/2.
func disconnectOf(r *http.Request) *client.DisconnectDetector {
	if t, ok := r.Context().Value(tunnelKey{}).(*tunnel); ok {
		return t.disconnect
	}
	return clientOf(r).Disconnect
}

// admit returns what to answer if the crawler has too many connections open.
func (p *Proxy) admit(r *http.Request, k *policy.Crawler) *problem {
	if k.MaxConnections == 0 || p.conns.AdmitCrawler(clientOf(r), k.Name, k.MaxConnections) {
		return nil
	}
	p.conns.Reject(client.PerCrawler, k.Name)
	return &problem{
		status: http.StatusServiceUnavailable, title: "Too many connections", retry: time.Second, fault: "http_request_denied", closeAfter: true,
		detail: "The crawler " + k.Name + " has as many connections open as " + p.Names.MaxConnectionsPerCrawler + " allows.",
	}
}

// withStreamLimits returns a handler that admits HTTP/2 requests as far as there is memory.
func (p *Proxy) withStreamLimits(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			serve(w, r)
			return
		}
		c := clientOf(r)
		end, err := c.AdmitStream(r, p.Limits.IdleTimeout)
		if err != nil {
			if errors.Is(err, memory.ErrLimit) { // not if the client has disconnected
				p.conns.ResetStream(c)
			}
			panic(http.ErrAbortHandler) // a response would have to wait for the client, too
		}
		defer end()
		serve(w, r)
		c.FlushStream(w)
	}
}
