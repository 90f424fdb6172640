package client

import (
	"cmp"
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
	warnEvery   = time.Minute      // for one client of one kind
	trustLasts  = 10 * time.Minute // for so long a request through TLS proves that its client trusts the CA
	hangupGrace = 5 * time.Second  // a client that only probes for the protocol sends a request within this
	hangupSoon  = 5 * time.Second  // after the handshake; browsers keep unused connections for longer
	trialLasts  = time.Minute      // longer than robotsgate doctor tries its clients
	maxClients  = 1024             // clients to remember; the log says nothing about further ones
)

// TrustHints warns of clients that do not trust the gate's CA, and says what such a client
// needs.
type TrustHints struct {
	Log *slog.Logger

	mu      sync.Mutex
	clients map[hintKey]*trust
	stopped bool
	trial   netip.Addr // of the clients that are being tried, see Try
	tried   time.Time
}

// A hintKey is what one warning in a minute is about, however many connections the client opens.
type hintKey struct {
	kind    *Kind
	address netip.Addr
}

// trust is what is known about a client.
type trust struct {
	proven  time.Time // when it last sent a request through TLS
	warned  time.Time
	pending bool // it hung up, and a warning follows unless it sends a request within hangupGrace
}

// Try says that robotsgate doctor tries now which clients at an address trust the CA: the log warns of none of them for a
// minute. Only the newest address counts, so that strangers cannot fill the memory.
func (h *TrustHints) Try(address netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trial, h.tried = address, time.Now()
}

// triedLocked reports whether the clients at an address are being tried.
func (h *TrustHints) triedLocked(address netip.Addr) bool {
	return address == h.trial && time.Since(h.tried) < trialLasts
}

// A TLSClient is what the hints need to know about a client's TLS connection.
type TLSClient struct {
	Kind   *Kind
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
		h.rejected(c, t, text)
	case state.Version != 0 && !state.DidResume && isHangup(err):
		h.hungUp(c, t, "it hung up when it saw the certificate")
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
		if s := h.trustLocked(hintKey{t.Kind, AddrOf(c)}); s != nil {
			s.proven = time.Now()
		}
	case state == http.StateClosed && time.Since(t.completed) < hangupSoon:
		h.hungUp(c, t, "it hung up right after the handshake")
	}
}

// Stop ends the warnings of clients that have hung up.
func (h *TrustHints) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
}

// rejected warns of a client that has sent an alert.
func (h *TrustHints) rejected(c net.Conn, t *TLSClient, reason string) {
	h.mu.Lock()
	s := h.trustLocked(hintKey{t.Kind, AddrOf(c)})
	warn := s != nil && time.Since(s.warned) >= warnEvery && !h.triedLocked(AddrOf(c))
	if warn {
		s.warned = time.Now()
	}
	h.mu.Unlock() // before the log, which may block
	if !warn {
		return
	}
	ca := "http://" + c.LocalAddr().String() + "/ca.pem"
	if t.Redirected { // that is the origin's address
		ca = "robotsgate ca"
	}
	h.Log.Warn("a client does not trust the CA", "client", AddrOf(c), "kind", t.Kind.name, "target", t.Target, "error", reason,
		"trust", t.Kind.trust, "ca.pem", ca)
}

// hungUp warns of a client later, unless it proves its trust: clients such as Crawlee's open
// connections only to see which protocol is negotiated, and then come back.
func (h *TrustHints) hungUp(c net.Conn, t *TLSClient, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.trustLocked(hintKey{t.Kind, AddrOf(c)})
	if s == nil || s.pending || h.triedLocked(AddrOf(c)) || time.Since(s.proven) < trustLasts || time.Since(s.warned) < warnEvery {
		return
	}
	s.pending = true
	time.AfterFunc(hangupGrace, func() {
		h.mu.Lock()
		s.pending = false
		warn := !h.stopped && time.Since(s.proven) >= trustLasts
		h.mu.Unlock()
		if warn {
			h.rejected(c, t, reason)
		}
	})
}

// trustLocked returns what is known about a client, nil if too many clients are known.
func (h *TrustHints) trustLocked(k hintKey) *trust {
	if s := h.clients[k]; s != nil {
		return s
	}
	if len(h.clients) >= maxClients {
		maps.DeleteFunc(h.clients, func(_ hintKey, s *trust) bool {
			return !s.pending && time.Since(s.proven) >= trustLasts && time.Since(s.warned) >= warnEvery
		})
		if len(h.clients) >= maxClients {
			return nil
		}
	}
	if h.clients == nil {
		h.clients = map[hintKey]*trust{}
	}
	s := &trust{}
	h.clients[k] = s
	return s
}

// An UntrustingClient has rejected the gate's certificate.
type UntrustingClient struct {
	Address netip.Addr
	Kind    string // as far as the gate can tell
	Trust   string // what a client of this kind needs
}

// Untrusting returns the clients that have been warned of since a time and have not sent a
// request through TLS since the warning.
func (h *TrustHints) Untrusting(since time.Time) (all []UntrustingClient) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, s := range h.clients {
		if s.warned.After(since) && s.warned.After(s.proven) {
			all = append(all, UntrustingClient{k.address, k.kind.name, k.kind.trust})
		}
	}
	slices.SortFunc(all, func(a, b UntrustingClient) int {
		return cmp.Or(a.Address.Compare(b.Address), strings.Compare(a.Kind, b.Kind))
	})
	return all
}
