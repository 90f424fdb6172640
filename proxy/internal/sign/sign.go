// Package sign signs requests as Web Bot Auth requires: HTTP Message Signatures (RFC 9421) with Ed25519,
// in the form of draft-ietf-webbotauth-httpsig-protocol-01, or of the drafts before it, in which
// Signature-Agent is a string.
//
// [Signing.Transport] sends requests with signatures, which [Signer.Sign] makes without I/O and without a clock.
package sign

// Where to change what.
//
//	the form of a signature  sign.go, with vectors in testdata; when a request is signed: transport.go

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A Key is an Ed25519 key. Several goroutines may call its methods.
type Key interface {
	ID() string                 // thumbprint (RFC 7638), in base64url
	Sign(message []byte) []byte // 64 bytes
}

// A Form is a form of Signature-Agent.
type Form int

// The forms of Signature-Agent.
const (
	// String is a string with an origin, as in draft-meunier-http-message-signatures-directory-03. Verifiers
	// that are in use accept only this form.
	String Form = iota
	// Dictionary has the URL of the JWK Set, as in draft-ietf-webbotauth-httpsig-protocol-01.
	Dictionary
)

const (
	label         = "sig1"
	validity      = 60 // seconds
	directoryPath = "/.well-known/http-message-signatures-directory"

	nonceSize     = 64 // bytes, as in the test vectors of the draft
	signatureSize = 64 // bytes of an Ed25519 signature
)

// A Nonce makes two signatures over the same components differ. It must be random.
type Nonce [nonceSize]byte

// A Signer makes the signatures of one key and one agent. It is safe for concurrent use.
type Signer struct {
	key   Key
	agent string // the value of Signature-Agent
	line  string // its line of the base, and the name of the line of parameters
	first string // the parameters up to the value of created
	after string // the parameters from there to the value of expires
}

// New returns a Signer. The agent is an https origin in canonical form, such as https://bots.example.com.
func New(key Key, agent string, form Form) *Signer {
	component, covered := strconv.Quote(agent), `"signature-agent"`
	field := component
	if form == Dictionary {
		component, covered = strconv.Quote(agent+directoryPath), `"signature-agent";key="`+label+`"`
		field = label + "=" + component
	}
	return &Signer{
		key: key, agent: field,
		line:  "\n" + covered + ": " + component + "\n\"@signature-params\": ",
		first: `("@authority" "@method" "@path" ` + covered + ");created=",
		after: `;keyid="` + key.ID() + `";alg="ed25519";expires=`,
	}
}

// KeyID returns the thumbprint of the key.
func (s *Signer) KeyID() string { return s.key.ID() }

// Fields are the values of the three header fields of a signed request.
type Fields struct {
	Agent     string // Signature-Agent
	Input     string // Signature-Input
	Signature string // Signature
}

// Sign signs a request with this authority, method, and path without its query, each exactly as it is
// sent. The signature is valid for 60 seconds from created. The error is about a component or time that can't be
// signed, or about the key; it has nothing of the key.
func (s *Signer) Sign(authority, method, path string, created time.Time, nonce *Nonce) (Fields, error) {
	for _, c := range []struct{ name, value string }{{"@authority", authority}, {"@method", method}, {"@path", path}} {
		if !visible(c.value) {
			return Fields{}, fmt.Errorf("the %s of the request is empty, or has bytes that no signature covers", c.name)
		}
	}
	at := created.Unix()
	if at <= 0 {
		return Fields{}, errors.New("the clock is before 1970")
	}
	var room [1024]byte // for the base and the fields of most requests
	base, params := s.appendBase(room[:0], authority, method, path, at, nonce)
	signature, err := signed(s.key, base)
	if err != nil {
		return Fields{}, err
	}
	out := append(append(base, label+"="...), base[params:]...) // in the same room
	end := len(out) - len(base)
	out = append(base64.StdEncoding.AppendEncode(append(out, label+"=:"...), signature), ':')
	both := string(out[len(base):])
	return Fields{s.agent, both[:end], both[end:]}, nil
}

// appendBase appends the signature base (RFC 9421, 2.5), and returns where the value of
// @signature-params begins in it.
func (s *Signer) appendBase(b []byte, authority, method, path string, created int64, nonce *Nonce) (base []byte, params int) {
	b = append(append(b, `"@authority": `...), authority...)
	b = append(append(b, "\n\"@method\": "...), method...)
	b = append(append(b, "\n\"@path\": "...), path...)
	b = append(b, s.line...)
	params = len(b)
	b = strconv.AppendInt(append(b, s.first...), created, 10)
	b = strconv.AppendInt(append(b, s.after...), created+validity, 10)
	b = base64.StdEncoding.AppendEncode(append(b, `;nonce="`...), nonce[:])
	return append(b, `";tag="web-bot-auth"`...), params
}

// visible reports whether a component has visible ASCII characters only. A line feed in it would begin another line
// of the base.
func visible(component string) bool {
	for i := range len(component) {
		if component[i] <= ' ' || component[i] >= 0x7f {
			return false
		}
	}
	return component != ""
}

// signed returns the key's signature of a base. The text of a panic is left out of the error: it might have the key.
func signed(key Key, base []byte) (signature []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errKey
		}
	}()
	if signature = key.Sign(base); len(signature) != signatureSize {
		return nil, errKey
	}
	return signature, nil
}

var errKey = errors.New("the key makes no signature")
