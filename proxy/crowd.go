package proxy

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy/internal/memory"
)

// A crowd counts clients' connections: all, by address, and by crawler. Who a
// connection belongs to is known only by its requests, and by more than one crawler
// if their User-Agents differ: it is counted for each until it closes. The requests
// that an HTTP/2 connection carries at a time are not counted, only bounded.
type crowd struct {
	mu      sync.Mutex
	total   int
	tunnels int
	clients map[netip.Addr]*clientTotals
	inUse   map[string]int // by crawler's name, since a reload makes new crawlers of the same names
	turned  map[limit]*turned
	memory  memory.Budget
	refused turned // for want of memory
}

// clientTotals are what the connections of one address have together.
type clientTotals struct {
	conns  int
	memory memory.Client
}

// Connections are how many a proxy's clients have.
type Connections struct {
	Open    int
	Tunnels int // of those: after a CONNECT
	// TurnedAway counts those for which there was no room, by the limit that they
	// met with.
	TurnedAway map[string]int64
}

// Connections counts them.
func (p *Proxy) Connections() Connections {
	c := &p.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	all := Connections{Open: c.total, Tunnels: c.tunnels, TurnedAway: map[string]int64{}}
	for _, l := range []limit{limitTotal, limitClient, limitCrawler} {
		all.TurnedAway[string(l)] = 0
		if t := c.turned[l]; t != nil {
			all.TurnedAway[string(l)] = t.total
		}
	}
	return all
}

// enter reports whether there is room for a connection, which then has to leave.
func (c *crowd) enter(conn *clientConn, s *Settings, log *slog.Logger) bool {
	full := c.count(conn, s)
	if full != "" {
		c.turnedAway(full, conn.address.String(), log)
	}
	return full == ""
}

// count counts a connection, or returns the limit that is reached.
func (c *crowd) count(conn *clientConn, s *Settings) (full limit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, most := c.clients[conn.address], s.MaxConnectionsPerClient
	switch {
	case most > 0 && of != nil && of.conns >= most:
		return limitClient
	case c.total >= s.MaxConnections:
		return limitTotal
	}
	if c.clients == nil {
		c.clients = map[netip.Addr]*clientTotals{}
	}
	if of == nil {
		of = &clientTotals{memory: memory.Client{Budget: &c.memory}}
		c.clients[conn.address] = of
	}
	c.total++
	of.conns++
	conn.memory = &of.memory
	return ""
}

// admit reports whether a crawler with a bound may use a connection.
func (c *crowd) admit(conn *clientConn, k *policy.Crawler) bool {
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

// dig counts a connection as a tunnel.
func (c *crowd) dig(conn *clientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn != nil && !conn.tunnel && !conn.closed {
		conn.tunnel = true
		c.tunnels++
	}
}

// leave takes a connection out of the count, once.
func (c *crowd) leave(conn *clientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.closed {
		return
	}
	c.total--
	if of := c.clients[conn.address]; of != nil {
		if of.conns--; of.conns <= 0 {
			delete(c.clients, conn.address)
		}
	}
	for _, name := range conn.crawlers {
		drop(c.inUse, name) // it may be configured no more
	}
	if conn.tunnel {
		c.tunnels--
	}
	conn.crawlers, conn.closed = nil, true
}

func drop[K comparable](counts map[K]int, k K) {
	if counts[k]--; counts[k] <= 0 {
		delete(counts, k)
	}
}

// turnedAway counts a client for which there was no room, and says once a minute
// who they were.
func (c *crowd) turnedAway(at limit, who string, log *slog.Logger) {
	c.mu.Lock()
	if c.turned == nil {
		c.turned = map[limit]*turned{}
	}
	if c.turned[at] == nil {
		c.turned[at] = &turned{}
	}
	names, open := c.turned[at].add(who, time.Now()), c.total
	c.mu.Unlock() // before the log, which may be slow
	if len(names) > 0 {
		log.Warn("clients are turned away: they have as many connections open as a limit allows",
			"limit", string(at), "clients", strings.Join(names, ", "), "open", open)
	}
}

// noMemory says once a minute whose requests there was no memory for.
func (c *crowd) noMemory(conn *clientConn, err error, log *slog.Logger) {
	if !errors.Is(err, memory.ErrLimit) {
		return // the client has left
	}
	c.mu.Lock()
	names := c.refused.add(conn.address.String(), time.Now())
	c.mu.Unlock()
	if len(names) > 0 {
		log.Warn("HTTP/2 requests are reset: their clients have too many in progress", "clients", strings.Join(names, ", "))
	}
}

type clientKey struct{}

// clientOf returns the client's connection that a request came by, also through
// a tunnel.
func clientOf(r *http.Request) *clientConn {
	c, _ := comesBy(r)
	return c
}

// comesBy reports too whether it is through a tunnel.
func comesBy(r *http.Request) (c *clientConn, tunnelled bool) {
	if t, ok := r.Context().Value(tunnelKey{}).(*tunnel); ok {
		return t.client, true
	}
	c, _ = r.Context().Value(clientKey{}).(*clientConn)
	return c, false
}

// admit returns what to answer if the crawler has too many connections open.
func (p *Proxy) admit(r *http.Request, k *policy.Crawler) *problem {
	if k.MaxConnections == 0 || p.crowd.admit(clientOf(r), k) {
		return nil
	}
	p.crowd.turnedAway(limitCrawler, k.Name, p.Log)
	return &problem{
		status: http.StatusServiceUnavailable, title: "Too many connections", retry: time.Second, fault: "http_request_denied", closeAfter: true,
		detail: "The crawler " + k.Name + " has as many connections open as its max_connections allows.",
	}
}
