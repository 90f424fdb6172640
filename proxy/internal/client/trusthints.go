package client

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"

	"robotsgate/internal/logtext"
)

// TrustHints warns once a minute of clients that do not trust the gate's CA, and names the page to read.
type TrustHints struct {
	Log    *slog.Logger
	warned logtext.Minute
}

// Handshake performs the handshake with a client, and closes the connection if it fails.
func (h *TrustHints) Handshake(c net.Conn, config *tls.Config, target string) (*tls.Conn, error) {
	secure := tls.Server(c, config)
	err := secure.Handshake()
	if err == nil {
		return secure, nil
	}
	c.Close()
	h.Log.Debug("TLS handshake", "client", c.RemoteAddr(), "target", target, "error", err)
	if !GaveUp(err) {
		return nil, err
	}
	if due := h.warned.Add(); due > 0 {
		h.Log.Warn("a client gave up the TLS handshake: most likely it does not trust the CA; see docs/clients.md",
			"client", AddrOf(c), "target", target, "error", err, "others_since_last", due-1)
	}
	return nil, err
}

// GaveUp reports whether the client has ended a handshake with an alert. In TLS 1.3 OpenSSL sends the alert with which it
// rejects a certificate in clear, when crypto/tls expects encrypted records already, and can't decrypt it.
func GaveUp(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" || strings.HasSuffix(err.Error(), "tls: bad record MAC")
}
