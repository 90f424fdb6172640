package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// mistrust tells the log of clients that don't accept the gate's certificates,
// and what such a client has to be told.
type mistrust struct {
	log *slog.Logger

	mu       sync.Mutex
	said     map[culprit]time.Time // when the log was told
	content  map[culprit]time.Time // when it last sent a request through TLS
	suspects map[culprit]struct{}  // that have hung up, and may come again

	telling sync.Mutex // of suspects; guards what follows
	stopped bool
}

// A culprit is told of once a minute, whatever number of connections it opens.
type culprit struct {
	kind    *kind
	address netip.Addr
}

const (
	sayEvery   = time.Minute
	maxMemory  = 1024             // culprits in each map; beyond that some go untold
	forgiven   = 10 * time.Minute // for so long a request proves that its client trusts the CA
	hesitation = 5 * time.Second  // a client that only looks is back by then
	rightAfter = 5 * time.Second  // after its handshake; browsers keep connections in stock for longer
)

// rejections are the alerts by which a client says so (RFC 8446, 6.2). OpenSSL
// sends its own in clear where the server, which has switched keys, finds only a
// bad record.
var rejections = []string{"unknown certificate", "bad certificate", "unknown certificate authority", "bad record MAC"}

// A greeted connection knows whether a certificate was shown on it.
type greeted interface{ wasShown() *bool }

func shown(c net.Conn) bool {
	g, ok := c.(greeted)
	return ok && *g.wasShown()
}

// show takes down that the certificate goes out now. Before that, a client that
// leaves has rejected nothing.
func show(c net.Conn) {
	if g, ok := c.(greeted); ok {
		*g.wasShown() = true
	}
}

// failed is told of a handshake on c that did not come off.
func (m *mistrust) failed(c net.Conn, k *kind, target string, err error) {
	reason := err.Error()
	who := culprit{k, addrOf(c)}
	switch {
	case slices.ContainsFunc(rejections, func(sign string) bool { return strings.HasSuffix(reason, "tls: "+sign) }):
		m.tell(who, c, target, reason)
	case shown(c) && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		m.suspect(who, c, target, "it hung up when it saw the certificate")
	default:
		m.log.Debug("TLS handshake", "client", c.RemoteAddr(), "target", target, "error", reason)
	}
}

// watch is told of what becomes of the connections inside tunnels. Some clients
// complete the handshake and only then look at the certificate.
func (m *mistrust) watch(c net.Conn, t *tunnel, state http.ConnState) {
	switch {
	case t.opened.IsZero(), t.used: // or it is in clear
	case state == http.StateActive:
		t.used = true
		m.trusts(culprit{t.kind, addrOf(c)})
	case state == http.StateClosed && time.Since(t.opened) < rightAfter:
		m.suspect(culprit{t.kind, addrOf(c)}, c, t.authority, "it hung up right after the handshake")
	}
}

// trusts takes down that a client has sent a request through TLS.
func (m *mistrust) trusts(who culprit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if room(&m.content, who, forgiven) {
		m.content[who] = time.Now()
	}
}

// suspect waits before it tells: clients such as Crawlee's open connections only
// to see which protocol is chosen, and then come for good.
func (m *mistrust) suspect(who culprit, c net.Conn, target, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, waits := m.suspects[who]; waits || len(m.suspects) >= maxMemory || time.Since(m.content[who]) < forgiven || time.Since(m.said[who]) < sayEvery {
		return
	}
	if m.suspects == nil {
		m.suspects = map[culprit]struct{}{}
	}
	m.suspects[who] = struct{}{}
	time.AfterFunc(hesitation, func() {
		m.mu.Lock()
		delete(m.suspects, who)
		trusted := time.Since(m.content[who]) < forgiven
		m.mu.Unlock()
		m.telling.Lock()
		defer m.telling.Unlock()
		if !trusted && !m.stopped {
			m.tell(who, c, target, reason)
		}
	})
}

// stop ends all telling of suspects: when it returns, nothing of it is going on.
func (m *mistrust) stop() {
	m.telling.Lock()
	defer m.telling.Unlock()
	m.stopped = true
}

// tell logs what the client has to be told, unless it was said a moment ago.
func (m *mistrust) tell(who culprit, c net.Conn, target, reason string) {
	m.mu.Lock()
	again := time.Since(m.said[who]) < sayEvery || !room(&m.said, who, sayEvery)
	if !again {
		m.said[who] = time.Now()
	}
	m.mu.Unlock()
	if again {
		m.log.Debug("TLS handshake", "client", c.RemoteAddr(), "target", target, "error", reason)
		return
	}
	m.log.Warn("a client does not trust the CA", "client", who.address, "kind", who.kind.name, "target", target, "error", reason,
		"trust", who.kind.trust, "ca.pem", "http://"+c.LocalAddr().String()+"/ca.pem")
}

// room makes room for one more in a map, which keeps nothing for longer than
// life when it is full. It reports false if there is no room.
func room(times *map[culprit]time.Time, who culprit, life time.Duration) bool {
	if *times == nil {
		*times = map[culprit]time.Time{}
	}
	if _, known := (*times)[who]; known || len(*times) < maxMemory {
		return true
	}
	for k, at := range *times {
		if time.Since(at) >= life {
			delete(*times, k)
		}
	}
	return len(*times) < maxMemory
}

// handshake opens TLS in a tunnel. It returns nil if the client won't have it.
func (p *Proxy) handshake(t *tunnel) *tls.Conn {
	secure := tls.Server(t, p.tls)
	_ = t.SetDeadline(time.Now().Add(p.Limits.HeaderTimeout))
	if err := secure.Handshake(); err != nil {
		p.errors.mistrust.failed(t, t.kind, t.authority, err)
		t.Close()
		return nil
	}
	_ = t.SetDeadline(time.Time{})
	t.opened = time.Now()
	return secure
}
