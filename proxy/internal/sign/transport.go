package sign

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"time"

	"robotsgate/policy/snapshot"
	"robotsgate/proxy/internal/header"
)

// Signing says how the requests of one crawler are signed (RFC 9421), as
// draft-ietf-webbotauth-httpsig-protocol-01 requires. Crawler, Key and Agent are required.
type Signing struct {
	Crawler string // its name
	Key     Key
	// Agent is the https origin that publishes the key, in canonical form, such as https://bots.example.com.
	Agent string
	// Dictionary makes Signature-Agent a dictionary, as in that draft. Otherwise it is a string, as in the
	// drafts before it.
	Dictionary bool
	// Asked, if not nil, limits signing to requests to the origins in it. The transport adds each origin
	// that asks for signatures with Accept-Signature. nil: requests to all origins are signed.
	Asked *Memory
}

// Transport returns a RoundTripper that sends requests with next, in general an Upstream of the proxy, and signs them. It is for
// Wrap of policy.Crawler. Each attempt to send a request has a signature of its own, made when there is a connection.
// The fields of signatures that a client has sent are removed, also where requests are not signed. The error is
// [snapshot.ErrUnsigned] if no signature can be made: then nothing is sent.
//
// next must call the GotConn of the httptrace.ClientTrace in the request's context before each attempt, as http.Transport does.
func (s Signing) Transport(next http.RoundTripper) http.RoundTripper {
	form := String
	if s.Dictionary {
		form = Dictionary
	}
	return &signingTransport{next, New(s.Key, s.Agent, form), s.Crawler, s.Asked}
}

type signingTransport struct {
	next    http.RoundTripper
	signer  *Signer
	crawler string
	asked   *Memory // nil: all requests are signed
}

func (t *signingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	origin := Pair{Crawler: t.crawler, Scheme: r.URL.Scheme, Host: r.URL.Host}
	if t.asked == nil || t.asked.Has(origin, time.Now()) {
		resp, err := t.sendSigned(r)
		t.receive(origin, resp)
		return resp, err
	}
	plain := r.WithContext(r.Context())
	plain.Header = withoutSignatures(r.Header)
	resp, err := t.next.RoundTrip(plain)
	t.receive(origin, resp)
	return resp, err
}

// receive notes an origin that asks for signatures.
func (t *signingTransport) receive(origin Pair, resp *http.Response) {
	if t.asked != nil && resp != nil && resp.StatusCode >= 200 && Asks(resp.Header, t.signer.KeyID()) {
		t.asked.Add(origin, time.Now())
	}
}

var errNoConnection = errors.New("the transport did not say when it had a connection")

// sendSigned sends a request with a signature.
func (t *signingTransport) sendSigned(r *http.Request) (*http.Response, error) {
	s := &signedRequest{signer: t.signer}
	s.trace.GotConn = s.sign
	s.Request = r.WithContext(httptrace.WithClientTrace(r.Context(), &s.trace))
	s.Header = withoutSignatures(r.Header)
	resp, err := t.next.RoundTrip(s.Request)
	if s.err == nil && err == nil && !s.signed {
		s.err = fmt.Errorf("%w: %w", snapshot.ErrUnsigned, errNoConnection)
	}
	if s.err != nil {
		if resp != nil {
			resp.Body.Close()
		}
		return nil, s.err
	}
	if result, ok := r.Context().Value(signatureKey{}).(*Signature); ok && s.signed {
		*result = Signature{t.signer.KeyID(), s.took}
	}
	return resp, err
}

// A Signature is how a request was signed.
type Signature struct {
	Key  string        // its ID; empty: it was not signed
	Took time.Duration // to make the signatures of all attempts
}

// signatureKey is the key of the *Signature in the context of a request, for [RoundTrip].
type signatureKey struct{}

// RoundTrip sends a request with a transport that may sign it, and returns how it was signed.
func RoundTrip(t http.RoundTripper, r *http.Request) (*http.Response, Signature, error) {
	var s Signature
	resp, err := t.RoundTrip(r.WithContext(context.WithValue(r.Context(), signatureKey{}, &s)))
	return resp, s, err
}

// A signedRequest is a request that is signed before each attempt to send it.
type signedRequest struct {
	*http.Request
	signer *Signer
	trace  httptrace.ClientTrace
	signed bool
	took   time.Duration // to make the signatures of all attempts
	err    error         // why the last attempt could not be signed
}

// sign sets the fields of the signature for an attempt, or closes its connection, so that nothing can be sent on it.
func (s *signedRequest) sign(attempt httptrace.GotConnInfo) {
	begun := time.Now()
	if s.err == nil {
		s.err = s.setFields(begun)
	}
	if s.err != nil {
		attempt.Conn.Close()
		return
	}
	s.signed = true
	s.took += time.Since(begun)
}

func (s *signedRequest) setFields(created time.Time) error {
	var nonce Nonce
	rand.Read(nonce[:]) // never fails
	path := s.URL.EscapedPath()
	if path == "" {
		path = "/" // as it is sent (RFC 9421, 2.2.6)
	}
	f, err := s.signer.Sign(s.Host, s.Method, path, created, &nonce)
	if err != nil {
		return fmt.Errorf("%w: %w", snapshot.ErrUnsigned, err)
	}
	values := [...]string{f.Agent, f.Input, f.Signature}
	s.Header["Signature-Agent"], s.Header["Signature-Input"], s.Header["Signature"] = values[0:1:1], values[1:2:2], values[2:3:3]
	return nil
}

// withoutSignatures returns a copy of a request's header without the fields of a signature, in every spelling that a
// server may take for their names. The copy has room for three more fields.
func withoutSignatures(h http.Header) http.Header {
	out := make(http.Header, len(h)+3)
	for name, values := range h {
		if !ofSignature(name) {
			out[name] = values
		}
	}
	return out
}

// ofSignature reports whether a field belongs to a signature.
func ofSignature(name string) bool {
	if len(name) < len("signature") || name[0]|0x20 != 's' { // most names
		return false
	}
	var buf [header.MaxPlain]byte
	switch string(header.Plain(buf[:0], name)) {
	case "signature", "signature-input", "signature-agent":
		return true
	}
	return false
}
