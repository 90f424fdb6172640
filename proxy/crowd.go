package proxy

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"robotsgate/policy"
)

// A crowd counts the connections that each crawler has in use. Who a connection
// belongs to is known only by its requests, and by more than one crawler if
// their User-Agents differ: it is counted for each until it closes.
type crowd struct {
	mu    sync.Mutex
	inUse map[string]int // by name, since a reload makes new crawlers of the same names
}

// admit reports whether a crawler may use a connection.
func (c *crowd) admit(conn *clientConn, k *policy.Crawler) bool {
	if k.MaxConnections == 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn == nil {
		return false
	}
	if slices.Contains(conn.crawlers, k.Name) {
		return true
	}
	if conn.closed || c.inUse[k.Name] >= k.MaxConnections {
		return false
	}
	if c.inUse == nil {
		c.inUse = map[string]int{}
	}
	c.inUse[k.Name]++
	conn.crawlers = append(conn.crawlers, k.Name)
	return true
}

// leave takes a connection out of the count, for good.
func (c *crowd) leave(conn *clientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range conn.crawlers {
		if c.inUse[name]--; c.inUse[name] == 0 {
			delete(c.inUse, name) // it may be configured no more
		}
	}
	conn.crawlers, conn.closed = nil, true
}

type clientKey struct{}

// clientOf returns the client's connection that a request came by, also through
// a tunnel.
func clientOf(r *http.Request) *clientConn {
	if t, ok := r.Context().Value(tunnelKey{}).(*tunnel); ok {
		return t.client
	}
	c, _ := r.Context().Value(clientKey{}).(*clientConn)
	return c
}

// admit returns what to answer if the crawler has too many connections open.
func (p *Proxy) admit(r *http.Request, k *policy.Crawler) *problem {
	if p.crowd.admit(clientOf(r), k) {
		return nil
	}
	return &problem{
		status: http.StatusServiceUnavailable, title: "Too many connections", retry: time.Second, fault: "http_request_denied", last: true,
		detail: "The crawler " + k.Name + " has as many connections open as its max_connections allows.",
	}
}
