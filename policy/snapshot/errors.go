package snapshot

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strconv"
	"strings"
)

// ParentSettings says where the parent proxy is set, for advice.
const ParentSettings = "egress.proxy or, for run, the variables https_proxy, http_proxy and all_proxy"

// Errors of [Resolver.Resolve]. A RoundTripper wraps ErrProhibited, ErrParent, ErrExhausted and ErrUnsigned,
// and returns an AnswerError.
var (
	// ErrProhibited says that the operator's egress rules forbid the destination.
	ErrProhibited = errors.New("destination is prohibited")
	// ErrNoHost says that the origin's name does not resolve, so that no request can be sent.
	ErrNoHost = errors.New("host name does not resolve")
	// ErrExhausted says that the gate's own machine could not open a connection, because it had
	// no file descriptor left. That says nothing about the origin.
	ErrExhausted = errors.New("the gate is out of resources for a connection")
	// ErrBusy says that as many large robots.txt files as may be are being read, so
	// that the origin's could not be.
	ErrBusy = errors.New("too many large robots.txt files are being read at once")
	// ErrParent says that the parent proxy can't be reached, so that the fault is not looked
	// for at the origin. The origin counts as unreachable.
	ErrParent = errors.New("the parent proxy can't be reached")
	// ErrUnsigned says that a request must be signed and could not be, so that it was not sent.
	ErrUnsigned = errors.New("the request could not be signed")
)

// An AnswerError says why the answer of an origin, which has come, cannot be read.
type AnswerError struct {
	Why   string
	Fault string // the type of the error (RFC 9209, 2.3); "": http_protocol_error
}

func (e *AnswerError) Error() string { return "the answer cannot be read: " + e.Why }

// CertificateFault says what is wrong with the certificate of an origin, and what to do about it.
func CertificateFault(err *tls.CertificateVerificationError) string {
	text, sent := strings.TrimPrefix(err.Err.Error(), "x509: "), err.UnverifiedCertificates
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err.Err); !unknown {
		return text
	}
	if n := len(sent); n > 0 && !bytes.Equal(sent[n-1].RawIssuer, sent[n-1].RawSubject) {
		text += "; the chain is incomplete: the origin does not send the certificate of " + strconv.Quote(sent[n-1].Issuer.String())
	}
	return text + "; if its CA is your own, name it in egress.ca_file"
}
