package proxy

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A gateListener accepts clients: no more of them than the limits say, and in
// TLS or in clear, as they please.
type gateListener struct {
	net.Listener
	settings *atomic.Pointer[Settings]
	tls      *tls.Config
	crowd    *crowd
	errors   clientErrors
	log      *slog.Logger

	mu      sync.Mutex
	total   int
	clients map[netip.Addr]int
	said    time.Time
	socks   sync.Once
	turning atomic.Int64 // clients being turned away
}

// full is what a client reads when there is no room for it.
const full = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 40\r\n" +
	"Retry-After: 1\r\nConnection: close\r\n\r\nrobotsgate: too many open connections.\r\n"

// Accept waits for the next client that there is room for.
func (l *gateListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client := addrOf(conn)
		if l.enter(client) {
			c := &clientConn{Conn: conn, tls: l.tls, socks: l.reportSocks, errors: l.errors}
			c.leave = sync.OnceFunc(func() {
				l.exit(client)
				l.crowd.leave(c)
			})
			return c, nil
		}
		l.report(client)
		if l.turning.Add(1) > maxTurning {
			l.turning.Add(-1)
			conn.Close()
			continue
		}
		go func() {
			defer l.turning.Add(-1)
			turnAway(conn)
		}()
	}
}

// maxTurning bounds the clients that are being told that there is no room.
const maxTurning = 100

// turnAway answers a client that there is no room for. It waits a moment for the
// request, since closing a connection with something unread in it takes the answer
// back (RFC 9112, 9.6), and many clients are puzzled by one that comes unasked.
func turnAway(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	buf := make([]byte, 4<<10)
	if n, _ := conn.Read(buf); n > 0 && buf[0] == recordTypeHandshake {
		return // it would take words in clear for a broken TLS
	}
	if _, err := io.WriteString(conn, full); err != nil {
		return
	}
	_ = closeWrite(conn)
	for range 16 { // what more of the request comes, within the second
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

func addrOf(c net.Conn) netip.Addr {
	a, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	return a.Addr().Unmap()
}

func (l *gateListener) enter(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.settings.Load()
	most := s.MaxConnectionsPerClient
	if l.total >= s.MaxConnections || most > 0 && l.clients[client] >= most {
		return false
	}
	if l.clients == nil {
		l.clients = map[netip.Addr]int{}
	}
	l.total++
	l.clients[client]++
	return true
}

func (l *gateListener) exit(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.clients[client]--; l.clients[client] == 0 {
		delete(l.clients, client)
	}
}

func (l *gateListener) report(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.said) < time.Minute {
		return
	}
	l.said = time.Now()
	l.log.Warn("clients are turned away: limits.max_connections or max_connections_per_client is reached", "client", client, "open", l.total)
}

func (l *gateListener) reportSocks() {
	l.socks.Do(func() {
		l.log.Warn("a client speaks SOCKS, the gate is an HTTP proxy: give the client its address with http:// in front")
	})
}
