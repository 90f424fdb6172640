package proxy

import (
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"robotsgate/proxy/internal/client"
)

// A RedirectRefusal is why a redirected connection is closed before any request.
type RedirectRefusal string

// The reasons.
const (
	NotRedirected RedirectRefusal = "not-redirected" // the client has connected to the gate's listener itself
	IsOwn         RedirectRefusal = "own"            // it is the gate's own, to an origin
	NoName        RedirectRefusal = "no-name"        // TLS without a server name
	BadName       RedirectRefusal = "bad-name"       // the server name is an address, or not a host name
	BadHello      RedirectRefusal = "bad-hello"      // the ClientHello is malformed or too long
	ClearHTTP2    RedirectRefusal = "clear-http2"    // HTTP/2 in clear, with prior knowledge
	NotHTTP       RedirectRefusal = "not-http"       // neither TLS nor HTTP
	Incomplete    RedirectRefusal = "incomplete"     // no complete ClientHello or request line in time
)

var redirectRefusals = []RedirectRefusal{NotRedirected, IsOwn, NoName, BadName, BadHello, ClearHTTP2, NotHTTP, Incomplete}

// Redirections are counts of connections that were redirected to the gate.
type Redirections struct {
	Served  int64 // their requests, or their tunnel, have been decided about
	Refused map[RedirectRefusal]int64
}

// Redirections counts the connections that [Proxy.ServeTransparent] has accepted.
func (p *Proxy) Redirections() Redirections {
	d := &p.redirected
	d.mu.Lock()
	defer d.mu.Unlock()
	return Redirections{d.served, maps.Collect(func(yield func(RedirectRefusal, int64) bool) {
		for _, reason := range redirectRefusals {
			if !yield(reason, d.refused[reason].Total()) {
				return
			}
		}
	})}
}

// redirections are the listeners of redirected connections, and counts of these.
type redirections struct {
	mu        sync.Mutex
	listeners []net.Listener
	end       chan struct{} // closed by close; nil: there is no listener
	closed    bool
	served    int64
	refused   map[RedirectRefusal]*client.Rejections
}

// begin notes a listener for close. It returns false after close.
func (d *redirections) begin(l net.Listener) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if d.end == nil {
		d.end = make(chan struct{})
	}
	d.listeners = append(d.listeners, l)
	return true
}

// close closes the listeners.
func (d *redirections) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end != nil && !d.closed {
		close(d.end)
	}
	d.closed = true
	for _, l := range d.listeners {
		l.Close()
	}
}

func (d *redirections) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// sleep waits, but not beyond close.
func (d *redirections) sleep(delay time.Duration) {
	select {
	case <-time.After(delay):
	case <-d.end:
	}
}

func (d *redirections) serve() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.served++
}

// refuseRedirected counts a connection and closes it. Once a minute it logs the clients. The client sees the end of
// its connection after it was counted.
func (p *Proxy) refuseRedirected(c *client.Conn, reason RedirectRefusal) {
	defer c.Close()
	if alert, ok := alertFor(reason); ok {
		defer sendAlert(c, alert)
	}
	d := &p.redirected
	d.mu.Lock()
	if d.refused == nil {
		d.refused = map[RedirectRefusal]*client.Rejections{}
	}
	if d.refused[reason] == nil {
		d.refused[reason] = &client.Rejections{}
	}
	names := d.refused[reason].Add(client.LimitKey(client.AddrOf(c)).String())
	d.mu.Unlock() // before the log, which may block
	if len(names) > 0 {
		p.Log.Warn("redirected connections are refused: "+redirectAdvice[reason], "reason", string(reason), "clients", strings.Join(names, ", "))
	}
}

// redirectAdvice says what is wrong, and what can be done.
var redirectAdvice = map[RedirectRefusal]string{
	NotRedirected: "their clients have connected to this listener themselves; give them the proxy's address, or redirect them",
	IsOwn:         "they are the gate's own connections to origins; except the gate's user from the rules that redirect",
	NoName:        "their TLS has no server name, so the gate does not know where to go; use the gate as a proxy for such clients",
	BadName:       "their TLS server name is not a host name; use the gate as a proxy for such clients",
	BadHello:      "they begin like TLS, but their ClientHello is malformed or too long",
	ClearHTTP2:    "they speak HTTP/2 in clear, which the gate does not read; use HTTP/1.1 or TLS",
	NotHTTP:       "they speak neither TLS nor HTTP; redirect the ports of HTTP and HTTPS only",
	Incomplete:    "no complete ClientHello or request line has arrived in time",
}
