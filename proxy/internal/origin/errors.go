package origin

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// The errors of a Transport that are not the fault of the origin, or that kept the gate from asking it. Package
// policy/snapshot reads their methods.
var (
	// ErrProhibited says that the operator's egress rules forbid the destination.
	ErrProhibited error = cause{text: "destination is prohibited", origin: true}
	// ErrNoHost says that the origin's name does not resolve, so that no request can be sent.
	ErrNoHost error = cause{text: "host name does not resolve", origin: true}
	// ErrExhausted says that the gate's own machine could not open a connection, because it had
	// no file descriptor left. That says nothing about the origin.
	ErrExhausted error = cause{text: "the gate is out of resources for a connection"}
	// ErrParent says that the parent proxy can't be reached, so that the fault is not looked
	// for at the origin. The origin counts as unreachable.
	ErrParent error = cause{text: "the parent proxy can't be reached", outage: true}
)

type cause struct {
	text           string
	origin, outage bool
}

func (c cause) Error() string { return c.text }

// OriginAtFault reports whether the origin is the cause: its name or its address.
func (c cause) OriginAtFault() bool { return c.origin }

// Outage reports whether the origin counts as unreachable.
func (c cause) Outage() bool { return c.outage }

// A worded error has its own words for crawlers and the log.
type worded struct {
	error
	reason string
}

func (w worded) Unwrap() error  { return w.error }
func (w worded) Reason() string { return w.reason }

// parentSettings says where the parent proxy is set, for advice.
const parentSettings = "egress.proxy or, for run, the variables https_proxy, http_proxy and all_proxy"

// parentFailed returns an ErrParent.
func parentFailed(err error) error {
	err = fmt.Errorf("%w: %w", ErrParent, err)
	return worded{err, err.Error() + "; check " + parentSettings}
}

// caused returns the error of a request with its cause, if the standard library has it in another type.
func caused(err error) error {
	err = exhausted(err)
	if err == nil || errors.Is(err, ErrExhausted) || errors.Is(err, ErrParent) {
		return err
	}
	if _, unresolved := errors.AsType[*net.DNSError](err); unresolved {
		return worded{fmt.Errorf("%w: %w", ErrNoHost, err), "its name does not resolve"} // without the resolver's address
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return worded{err, certificateFault(certificate)}
	}
	return err
}

// certificateFault says what is wrong with the certificate of an origin, and what to do about it.
func certificateFault(err *tls.CertificateVerificationError) string {
	text, sent := strings.TrimPrefix(err.Err.Error(), "x509: "), err.UnverifiedCertificates
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err.Err); !unknown {
		return text
	}
	if n := len(sent); n > 0 && !bytes.Equal(sent[n-1].RawIssuer, sent[n-1].RawSubject) {
		text += "; the chain is incomplete: the origin does not send the certificate of " + strconv.Quote(sent[n-1].Issuer.String())
	}
	return text + "; if its CA is your own, name it in egress.ca_file"
}
