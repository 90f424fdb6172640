package client

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	warnEvery   = time.Hour        // for one address
	trustLasts  = 10 * time.Minute // for so long a request through TLS proves that the clients at its address trust the CA
	hangupGrace = 5 * time.Second  // a client that only probes for the protocol sends a request within this
	hangupSoon  = 5 * time.Second  // after the handshake; browsers keep unused connections for longer
	maxClients  = 1024             // addresses to remember; the log says nothing about further ones
)

// TrustHints warns once an hour of the clients at an address that do not trust the gate's CA, and names the page to read.
type TrustHints struct {
	Log *slog.Logger

	mu      sync.Mutex
	clients map[netip.Addr]*trust
	stopped bool
}

// trust is what is known about the clients at an address.
type trust struct {
	proven  time.Time // when one of them last sent a request through TLS
	warned  time.Time
	pending bool // one hung up, and a warning follows unless a request arrives within hangupGrace
}

// A TLSClient is what the hints need to know about a client's TLS connection.
type TLSClient struct {
	Target string // of CONNECT
	// Redirected is set if the client does not know that it speaks to the gate.
	Redirected bool

	completed time.Time // when the handshake was complete; zero: it was not
	used      bool      // a request has arrived
}

// rejectAlerts are the alerts of a client that does not trust a certificate (RFC 8446, section
// 6.2).
var rejectAlerts = []string{"unknown certificate", "bad certificate", "unknown certificate authority"}

// Handshake performs the handshake with a client, and closes the connection if it fails.
func (h *TrustHints) Handshake(c net.Conn, config *tls.Config, t *TLSClient) (*tls.Conn, error) {
	tail := &recordTail{Conn: c}
	secure := tls.Server(tail, config)
	err := secure.Handshake()
	tail.complete = true
	if err == nil {
		t.completed = time.Now()
		return secure, nil
	}
	if alert, ok := tail.alert(); ok {
		err = &net.OpError{Op: "remote error", Err: alert}
	}
	c.Close()
	h.Log.Debug("TLS handshake", "client", c.RemoteAddr(), "target", t.Target, "error", err)
	// With a version negotiated, the client has been sent a certificate, or resumes a session.
	state := secure.ConnectionState()
	switch text := err.Error(); {
	case slices.ContainsFunc(rejectAlerts, func(alert string) bool { return strings.HasSuffix(text, "tls: "+alert) }):
		h.warn(c, t, text, 0)
	case state.Version != 0 && !state.DidResume && isHangup(err):
		h.warn(c, t, "it hung up when it saw the certificate", hangupGrace)
	}
	return nil, err
}

// GaveUp reports whether a handshake failed because the client ended it: with an alert, or by closing its connection.
func GaveUp(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return isHangup(err) || ok && op.Op == "remote error"
}

func isHangup(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// ConnState is called for each new state of a connection whose handshake succeeded. Some
// clients, such as Node, check the certificate only then.
func (h *TrustHints) ConnState(c net.Conn, t *TLSClient, state http.ConnState) {
	switch {
	case t.completed.IsZero(), t.used: // zero: not in TLS
	case state == http.StateActive:
		t.used = true
		h.mu.Lock()
		defer h.mu.Unlock()
		if s := h.trustLocked(AddrOf(c)); s != nil {
			s.proven = time.Now()
		}
	case state == http.StateClosed && time.Since(t.completed) < hangupSoon:
		h.warn(c, t, "it hung up right after the handshake", hangupGrace)
	}
}

// Stop ends the warnings of clients that have hung up.
func (h *TrustHints) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
}

// warn warns of a client after a delay: clients such as Crawlee's open connections only to see which protocol is
// negotiated, and then come back. Without a delay nothing contradicts the warning.
func (h *TrustHints) warn(c net.Conn, t *TLSClient, reason string, delay time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.trustLocked(AddrOf(c))
	if s == nil || s.pending || time.Since(s.warned) < warnEvery {
		return
	}
	s.pending = true
	time.AfterFunc(delay, func() {
		h.mu.Lock()
		s.pending = false
		warn := !h.stopped && (delay == 0 || time.Since(s.proven) >= trustLasts)
		if warn {
			s.warned = time.Now()
		}
		h.mu.Unlock() // before the log, which may block
		if !warn {
			return
		}
		page := "http://" + c.LocalAddr().String() + "/"
		if t.Redirected { // that is the origin's address
			page = "docs/clients.md"
		}
		h.Log.Warn("a client does not trust the CA", "client", AddrOf(c), "target", t.Target, "error", reason, "page", page)
	})
}

// trustLocked returns what is known about an address, nil if too many are known.
func (h *TrustHints) trustLocked(a netip.Addr) *trust {
	if s := h.clients[a]; s != nil {
		return s
	}
	if len(h.clients) >= maxClients {
		maps.DeleteFunc(h.clients, func(_ netip.Addr, s *trust) bool {
			return !s.pending && time.Since(s.proven) >= trustLasts && time.Since(s.warned) >= warnEvery
		})
		if len(h.clients) >= maxClients {
			return nil
		}
	}
	if h.clients == nil {
		h.clients = map[netip.Addr]*trust{}
	}
	s := &trust{}
	h.clients[a] = s
	return s
}
