package proxy

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"robotsgate/policy/canonical"
	"robotsgate/proxy/internal/auth"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/origin"
)

// A connection is what a request arrived on. Its server puts it into the context of each request.
type connection struct {
	client *client.Conn
	tunnel *tunnel // through client; nil: the request arrived outside of a tunnel
	// redirected is set if the client does not know that it speaks to the gate.
	redirected bool
	socks      bool // the client has sent a SOCKS request
	logins     origin.Session
}

type connectionKey struct{}

func connOf(r *http.Request) *connection {
	return r.Context().Value(connectionKey{}).(*connection)
}

// A tunnel is a client's connection after CONNECT or a SOCKS request, with where it leads; or one that was
// redirected to the gate.
type tunnel struct {
	net.Conn
	authority string       // canonical host and port, the port always given; "": each request names its host
	host      string       // of it, without brackets
	secure    string       // the origin that it leads to in TLS
	port      string       // of a redirected connection, or one of SOCKS: the port that the client has chosen; "": there was a CONNECT
	named     bool         // in clear: requests for other hosts are refused, as the client has asked for a name by SOCKS
	socks     bool         // there was a SOCKS request
	client    *client.Conn // the connection underneath
	login     *auth.Login  // that CONNECT or the SOCKS request came with; nil: none
	opened    inbound      // the tunnel as a whole; without a connection: the client has asked for none
	carried   atomic.Bool  // a request has reached its handler
	end       func()       // called when the inner server has served it
}

// tunnelOf returns the tunnel that a connection is, or that is below its TLS; nil if there is none.
func tunnelOf(c net.Conn) *tunnel {
	for {
		if t, ok := c.(*tunnel); ok {
			return t
		}
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = outer.NetConn()
	}
}

// leadsTo returns the origin that the tunnel leads to when it carries this scheme.
func (t *tunnel) leadsTo(scheme string) string {
	if scheme == "https" {
		return t.secure
	}
	target, err := canonical.ParseTarget(scheme, t.authority, "/")
	if err != nil {
		return ""
	}
	return target.Origin()
}

// names reports whether a TLS server name is the tunnel's host. Without one, as
// for addresses (RFC 6066, 3), there is nothing to disagree.
func (t *tunnel) names(server string) bool {
	switch server {
	case "":
		return true
	case t.host:
		return !strings.Contains(server, ":") // an address is no server name
	}
	target, err := canonical.ParseTarget("https", server, "/")
	return err == nil && target.Hostname() == t.host
}

// tunnelState is called for each new state of a tunnel that net/http serves. One that ends without a request is recorded.
func (p *Proxy) tunnelState(t *tunnel, inTLS bool, state http.ConnState) {
	switch {
	case t.opened.conn == nil:
	case state == http.StateNew:
		p.open.Add(t) // Shutdown waits for its record
	case state == http.StateClosed && !t.carried.Load():
		why := NoRequest
		if inTLS {
			why = NoneAfterTLS
		}
		p.recordUnused(&t.opened, http.StatusOK, why, nil)
		p.open.Remove(t)
	}
}

func newTunnel(o *opening) *tunnel {
	t := &tunnel{authority: o.target.Address(), secure: o.target.Origin(), opened: o.asTunnel(o.whole())}
	t.host, _, _ = net.SplitHostPort(t.authority)
	return t
}
