package sign

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"robotsgate/proxy/internal/header"
)

// Signing says how the requests of one crawler are signed (RFC 9421), as
// draft-ietf-webbotauth-httpsig-protocol-01 requires. Key and Agent are required.
type Signing struct {
	Key Key
	// Agent is the https origin that publishes the key, in canonical form, such as https://bots.example.com.
	Agent string
	// Dictionary makes Signature-Agent a dictionary, as in that draft. Otherwise it is a string, as in the
	// drafts before it.
	Dictionary bool
}

// Transport returns a RoundTripper that signs requests and sends them with next, in general an Upstream of the proxy.
// It is for Wrap of policy.Crawler. A request that next repeats carries the same signature each time. The fields of
// signatures that a client has sent are removed. The error is [ErrUnsigned] if no signature can be made: then
// nothing is sent.
func (s Signing) Transport(next http.RoundTripper) http.RoundTripper {
	form := String
	if s.Dictionary {
		form = Dictionary
	}
	return &signingTransport{next, New(s.Key, s.Agent, form)}
}

// ErrUnsigned says that a request must be signed and could not be, so that it was not sent.
var ErrUnsigned error = unsigned{}

type unsigned struct{}

func (unsigned) Error() string { return "the request could not be signed" }

// OriginAtFault and Outage say that the failure says nothing about the origin, see policy/snapshot.
func (unsigned) OriginAtFault() bool { return false }
func (unsigned) Outage() bool        { return false }

type signingTransport struct {
	next   http.RoundTripper
	signer *Signer
}

func (t *signingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, _, err := t.send(r)
	return resp, err
}

func (t *signingTransport) send(r *http.Request) (*http.Response, Signature, error) {
	begun := time.Now()
	fields, err := t.sign(r, begun)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, Signature{}, fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	signed := r.WithContext(r.Context())
	signed.Header = withoutSignatures(r.Header)
	values := [...]string{fields.Agent, fields.Input, fields.Signature}
	signed.Header["Signature-Agent"], signed.Header["Signature-Input"], signed.Header["Signature"] = values[0:1:1], values[1:2:2], values[2:3:3]
	by := Signature{t.signer.KeyID(), time.Since(begun)}
	resp, err := t.next.RoundTrip(signed)
	return resp, by, err
}

func (t *signingTransport) sign(r *http.Request, created time.Time) (Fields, error) {
	var nonce Nonce
	rand.Read(nonce[:]) // never fails
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/" // as it is sent (RFC 9421, 2.2.6)
	}
	return t.signer.Sign(r.Host, r.Method, path, created, &nonce)
}

// A Signature is how a request was signed.
type Signature struct {
	Key  string        // its ID; empty: it was not signed
	Took time.Duration // to make the signature
}

// RoundTrip sends a request, and returns how it was signed, if t is of [Signing.Transport].
func RoundTrip(t http.RoundTripper, r *http.Request) (*http.Response, Signature, error) {
	if signing, ok := t.(*signingTransport); ok {
		return signing.send(r)
	}
	resp, err := t.RoundTrip(r)
	return resp, Signature{}, err
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
