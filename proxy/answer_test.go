package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/origin"
)

// What the gate itself could not do names its cause, and the key to change.
func TestFailures(t *testing.T) {
	unreadable := func(why, fault string) error {
		return fmt.Errorf("sent: %w", &origin.AnswerError{Why: why, Fault: fault})
	}
	certificate := func(err error) error {
		return &tls.CertificateVerificationError{Err: err}
	}
	const noKey = "egress.ca_file"
	for _, c := range []struct {
		err                 error
		status              int
		fault, names, lacks string
	}{
		{os.ErrDeadlineExceeded, 504, "http_response_timeout", "egress.response_header_timeout", ""},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, 504, "connection_timeout", "egress.dial_timeout", "response_header"},
		{certificate(x509.UnknownAuthorityError{}), 502, "tls_certificate_error", noKey, ""},
		{certificate(x509.CertificateInvalidError{Reason: x509.Expired}), 502, "tls_certificate_error", "expired", noKey},
		{certificate(x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"a.example"}}, Host: "b.example"}), 502, "tls_certificate_error", "valid for a.example, not b.example", noKey},
		{unreadable("unsupported transfer encoding", "http_response_transfer_coding"), 502, "http_response_transfer_coding", "unsupported transfer encoding", "reached"},
		{unreadable(`malformed HTTP response "x"`, ""), 502, "http_protocol_error", `malformed HTTP response "x"`, "reached"},
		{fmt.Errorf("%w: it answered 502", origin.ErrNoTunnel), 502, "destination_unavailable", "parent proxy", ""},
		{fmt.Errorf("%w: refused", origin.ErrParent), 502, "proxy_configuration_error", "egress.proxy", "origin"},
		{fmt.Errorf("fetch: %w", snapshot.ErrBusy), 503, "proxy_internal_response", "large robots.txt", "origin could"},
	} {
		p := failure(c.err, &inbound{}, nil)
		if text := p.title + ": " + p.detail; p.status != c.status || p.fault != c.fault || !strings.Contains(text, c.names) || c.lacks != "" && strings.Contains(text, c.lacks) {
			t.Errorf("%v: got %d %s %q, want %d %s with %q and without %q", c.err, p.status, p.fault, text, c.status, c.fault, c.names, c.lacks)
		}
	}
}

// Seconds are written without the noise of binary fractions.
func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{1985 * time.Millisecond: "1.985", 90 * time.Second: "90", 7349400 * time.Microsecond: "7.349", 0: "0"} {
		if got := seconds(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
