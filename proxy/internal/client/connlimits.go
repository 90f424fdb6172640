package client

import (
	"log/slog"
	"net/netip"
	"slices"
	"sync"
)

// ConnLimits bounds the connections of all clients, of each client, and of each crawler. The
// crawlers of a connection are known only by its requests. If these have different
// User-Agents there may be several: the connection counts for each until it closes.
type ConnLimits struct {
	Log *slog.Logger
	// Max returns the limits in force, for all connections and for each client; 0: none for a client.
	Max func() (total, perClient int)

	mu       sync.Mutex
	conns    int
	clients  map[netip.Addr]int // connections
	crawlers map[string]int     // connections, by name, since a reload makes new crawlers of the same names
	tunnels  int
	rejected [len(limits)]Rejections
}

// A Limit is one of the limits on connections.
type Limit int

const (
	Total Limit = iota
	PerClient
	PerCrawler
)

// limits are the keys of the limits.
var limits = [...]string{Total: "limits.max_connections", PerClient: "limits.max_connections_per_client", PerCrawler: "crawlers[].max_connections"}

// connState is what ConnLimits knows about one connection. Its lock guards it.
type connState struct {
	client   netip.Addr
	crawlers []string
	counted  bool // it has been accepted, and not closed
	tunnel   bool
}

// Counts returns how many connections are open, how many of these are tunnels, and how many
// have been rejected, by the name of the limit.
func (l *ConnLimits) Counts() (open, tunnels int, rejected map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rejected = map[string]int64{}
	for limit, key := range limits {
		rejected[key] = l.rejected[limit].total.Load()
	}
	return l.conns, l.tunnels, rejected
}

// add counts a connection, unless a limit is reached.
func (l *ConnLimits) add(c *Conn, client netip.Addr) (limit Limit, ok bool) {
	total, perClient := l.Max()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case perClient > 0 && l.clients[client] >= perClient:
		return PerClient, false
	case l.conns >= total:
		return Total, false
	}
	if l.clients == nil {
		l.clients, l.crawlers = map[netip.Addr]int{}, map[string]int{}
	}
	l.clients[client]++
	l.conns++
	c.state = connState{client: client, counted: true}
	return 0, true
}

// remove ends the counting of a connection. net/http may close one twice.
func (l *ConnLimits) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.state.counted {
		return
	}
	c.state.counted = false
	l.conns--
	if l.clients[c.state.client]--; l.clients[c.state.client] == 0 {
		delete(l.clients, c.state.client)
	}
	for _, name := range c.state.crawlers {
		if l.crawlers[name]--; l.crawlers[name] == 0 {
			delete(l.crawlers, name)
		}
	}
	if c.state.tunnel {
		l.tunnels--
	}
}

// move makes what was counted for a connection count for another Conn of it.
func (l *ConnLimits) move(from, to *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to.state, from.state = from.state, connState{}
}

// AdmitCrawler reports whether a crawler may use a connection, of which it may have this many.
func (l *ConnLimits) AdmitCrawler(c *Conn, name string, most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !c.state.counted: // it has been closed
		return false
	case slices.Contains(c.state.crawlers, name):
		return true
	case l.crawlers[name] >= most:
		return false
	}
	l.crawlers[name]++
	c.state.crawlers = append(c.state.crawlers, name)
	return true
}

// MarkTunnel counts a connection as a tunnel.
func (l *ConnLimits) MarkTunnel(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.state.counted && !c.state.tunnel {
		c.state.tunnel = true
		l.tunnels++
	}
}

// Reject counts a rejected connection of a client or a crawler. Once a minute it logs a line.
func (l *ConnLimits) Reject(at Limit, name string) {
	l.rejected[at].Add(l.Log, "connections are rejected: their clients have as many open as a limit allows; raise the limit, or find out why they open so many",
		name, "limit", limits[at])
}
