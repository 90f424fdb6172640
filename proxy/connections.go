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

// A connection is what a request arrived on. Its server puts it into the context of each request.
type connection struct {
	client *client.Conn
	tunnel *tunnel // through client; nil: the request arrived outside of a tunnel
	// redirected is set if the client does not know that it speaks to the gate.
	redirected bool
}

type connectionKey struct{}

func connOf(r *http.Request) *connection {
	return r.Context().Value(connectionKey{}).(*connection)
}

// detector returns what detects that the client disconnects, nil for HTTP/2.
func (c *connection) detector() *client.DisconnectDetector {
	if c.tunnel != nil {
		return c.tunnel.disconnect
	}
	return c.client.Disconnect
}

// admit returns what to answer if the crawler has too many connections open.
func (p *Proxy) admit(r *http.Request, k *policy.Crawler) *problem {
	if k.MaxConnections == 0 || p.conns.AdmitCrawler(connOf(r).client, k.Name, k.MaxConnections) {
		return nil
	}
	p.conns.Reject(client.PerCrawler, k.Name)
	return &problem{
		status: http.StatusServiceUnavailable, title: "Too many connections", retry: time.Second, fault: "http_request_denied", closeAfter: true, refused: ByLimit,
		detail: "The crawler " + k.Name + " has as many connections open as crawlers[].max_connections allows.",
	}
}

// withStreamLimits returns a handler that admits HTTP/2 requests as far as there is memory.
func (p *Proxy) withStreamLimits(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			serve(w, r)
			return
		}
		c := connOf(r).client
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

// An UntrustingClient has rejected the gate's certificate.
type UntrustingClient = client.UntrustingClient

// UntrustingClients returns the clients that have rejected the gate's certificate in the last
// hour, and have not sent a request through TLS since.
func (p *Proxy) UntrustingClients() []UntrustingClient {
	return p.hints.Untrusting(time.Now().Add(-time.Hour))
}
