package origin

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// A Failure says why a request was not answered, for the client.
type Failure struct {
	Status int
	Kind   string // last part of the type URN of the problem; "": Fault
	Title  string
	Detail string // sentences: what happened, and what to do about it
	Fault  string // error type in Proxy-Status (RFC 9209, 2.3)
	Cause  string // details in Proxy-Status
	Retry  time.Duration
}

// Explain explains the error of a request or a tunnel to a host.
func Explain(err error, host string) Failure {
	f := Failure{Status: http.StatusBadGateway, Title: "The origin could not be reached"}
	var op *net.OpError
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	var unreadable *answerError
	switch {
	case errors.Is(err, ErrProhibited):
		f.Status, f.Kind, f.Title, f.Fault, f.Cause = http.StatusForbidden, "prohibited", "Destination prohibited", "destination_ip_prohibited", Innermost(err)
		f.Detail = "This gate does not connect there: " + f.Cause + "."
		if p, ok := errors.AsType[*prohibited](err); ok && p.advice != "" {
			f.Detail += " " + p.advice
		}
	case errors.Is(err, ErrExhausted):
		f.Status, f.Kind, f.Title, f.Fault, f.Retry = http.StatusServiceUnavailable, "out-of-resources", "The gate is out of file descriptors", "proxy_internal_error", 2*time.Second
		f.Cause = "out of file descriptors"
		f.Detail = "The gate could not open a connection, because it is out of file descriptors. This says nothing about the origin. The gate's operator can " +
			"raise the limit on its open files (ulimit -n, LimitNOFILE in a systemd unit, ulimits in a compose file), or fs.file-max of the machine."
	case errors.Is(err, ErrParent):
		f.Title, f.Fault, f.Cause = "The parent proxy could not be reached", "proxy_configuration_error", Innermost(err)
		f.Detail = "The proxy that this gate sends everything through can't be reached: " + f.Cause + ". Check " + parentSettings + "."
	case errors.Is(err, ErrNoHost):
		f.Fault, f.Detail = "dns_error", "The name "+host+" does not resolve. Check its spelling, and the DNS of the gate's machine."
	case errors.As(err, &unreadable):
		f.Title, f.Fault, f.Cause = "The origin's answer could not be read", cmp.Or(unreadable.Fault, "http_protocol_error"), unreadable.Why
		f.Detail = "The origin has answered, but not by the rules of HTTP: " + unreadable.Why + "."
	case errors.Is(err, errNoTunnel):
		f.Fault, f.Detail = "destination_unavailable", "The parent proxy opens no tunnel to the origin: "+Innermost(err)+"."
	case errors.Is(err, context.Canceled):
		f.Fault, f.Detail = "connection_terminated", "The request was given up before the origin answered."
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		f.Status, f.Fault, f.Detail = http.StatusGatewayTimeout, "connection_timeout", "The origin did not accept a connection, or did not complete the TLS handshake, within egress.dial_timeout."
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Status, f.Fault, f.Detail = http.StatusGatewayTimeout, "http_response_timeout", "The origin did not answer within egress.response_header_timeout. If its answers take longer, as those of language models may, the gate's operator can raise that."
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Fault, f.Detail = "connection_refused", "The origin refuses connections."
	case errors.As(err, &certificate):
		f.Fault, f.Cause = "tls_certificate_error", Innermost(err)
		f.Detail = "The origin's certificate is not trusted: " + certificateFault(certificate) + "."
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		f.Fault, f.Detail = "connection_terminated", "The origin closed the connection without a complete answer."
	default:
		f.Fault, f.Detail = "destination_unavailable", "The origin could not be reached."
	}
	return f
}

// Innermost returns the text of the root error: the wrapping ones repeat what the client knows.
func Innermost(err error) string {
	for {
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			if inner := u.Unwrap(); inner != nil {
				err = inner
				continue
			}
		case interface{ Unwrap() []error }:
			if all := u.Unwrap(); len(all) > 0 {
				err = all[len(all)-1]
				continue
			}
		}
		return strings.TrimPrefix(err.Error(), "x509: ")
	}
}
