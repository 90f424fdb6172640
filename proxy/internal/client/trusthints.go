package client

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	warnEvery  = time.Hour // for one address
	maxWarned  = 1024      // addresses to remember; the log says nothing about further ones
	clientsDoc = "docs/clients.md"
)

// TrustHints warns once an hour of the clients at an address that do not trust the gate's CA, and names the page to read.
type TrustHints struct {
	Log *slog.Logger

	mu     sync.Mutex
	warned map[netip.Addr]time.Time
}

// Handshake performs the handshake with a client, and closes the connection if it fails. The address is the one that the
// client has connected to, if it knows that this is the gate's; else it is empty.
func (h *TrustHints) Handshake(c net.Conn, config *tls.Config, target, address string) (*tls.Conn, error) {
	secure := tls.Server(c, config)
	err := secure.Handshake()
	if err == nil {
		return secure, nil
	}
	c.Close()
	h.Log.Debug("TLS handshake", "client", c.RemoteAddr(), "target", target, "error", err)
	if rejects(err) && h.due(AddrOf(c)) {
		page := clientsDoc
		if address != "" {
			page = "http://" + address + "/"
		}
		h.Log.Warn("a client gave up the TLS handshake: most likely it does not trust the CA",
			"client", AddrOf(c), "target", target, "error", err, "page", page)
	}
	return nil, err
}

// due reports whether a warning about an address is due, and notes that it is given.
func (h *TrustHints) due(a netip.Addr) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.warned, func(_ netip.Addr, at time.Time) bool { return time.Since(at) >= warnEvery })
	if _, warned := h.warned[a]; warned || len(h.warned) >= maxWarned {
		return false
	}
	if h.warned == nil {
		h.warned = map[netip.Addr]time.Time{}
	}
	h.warned[a] = time.Now()
	return true
}

// GaveUp reports whether a handshake failed because the client ended it: with an alert, or by closing its connection.
func GaveUp(err error) bool {
	return rejects(err) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// rejects reports whether the client has ended a handshake with an alert. In TLS 1.3 OpenSSL sends the alert with which it
// rejects a certificate in clear, when crypto/tls expects encrypted records already, and can't decrypt it.
func rejects(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" || strings.HasSuffix(err.Error(), "tls: bad record MAC")
}
