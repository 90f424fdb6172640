package policy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
)

// Errors of [Engine.Decide]. A RoundTripper wraps ErrProhibited, ErrParent, ErrExhausted and ErrUnsigned.
var (
	// ErrProhibited says that the operator's egress rules forbid the destination.
	ErrProhibited = errors.New("destination is prohibited")
	// ErrNoHost says that the origin's name does not resolve, so that no request can be sent.
	ErrNoHost = errors.New("host name does not resolve")
	// ErrExhausted says that the gate's own machine could not open a connection, because it had
	// no file descriptor, local port or memory left. That says nothing about the origin.
	ErrExhausted = errors.New("the gate is out of resources for a connection")
	// ErrBusy says that as many large robots.txt files as may be are being read, so
	// that the origin's could not be.
	ErrBusy = errors.New("too many large robots.txt files are being read at once")
	// ErrCostly says that too many slow decisions are waiting already.
	ErrCostly = errors.New("too many requests wait for a decision that takes long")

	// ErrParent says that the parent proxy can't be reached, so that the fault is not looked
	// for at the origin. The origin counts as unreachable.
	ErrParent = errors.New("the parent proxy can't be reached")

	// ErrUnsigned says that a request must be signed and could not be, so that it was not sent. A
	// RoundTripper wraps it.
	ErrUnsigned = errors.New("the request could not be signed")

	// ErrHiddenDots is the error of [Engine.CheckPath]: the path has a dot segment next to an
	// encoded separator, as in /public/..%2Fprivate, which servers resolve differently.
	ErrHiddenDots = errors.New("the path has a dot segment next to an encoded slash or backslash, which some servers resolve; send the path without it")
)

// shortened returns a text that is kept, within maxError.
func shortened(text string) string {
	if len(text) <= maxError {
		return text
	}
	return strings.ToValidUTF8(text[:maxError], "") + "…"
}

// reason words an error for the crawler and the log, without parts that only a
// programmer can read.
func (f *fetcher) reason(ctx context.Context, err error) string {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case unresolved(err):
		return "a redirect leads to a name that does not resolve" // without the resolver's address
	case errors.Is(err, ErrParent):
		return err.Error() + "; check egress.proxy"
	case errors.As(err, &certificate):
		return certificate.Err.Error() + "; if its CA is your own, name it in egress.ca_file"
	case ctx.Err() != nil:
		return "no complete answer within robots.timeout"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the answer was cut short"
	case errors.Is(err, io.EOF):
		return "the origin closed the connection without an answer"
	case errors.As(err, &op) && op.Op == "dial":
		return strings.TrimPrefix(op.Error(), "dial ")
	}
	return err.Error()
}

// unresolved reports whether an error is the resolver's.
func unresolved(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && !errors.Is(err, ErrParent)
}
