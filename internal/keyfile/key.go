// Package keyfile reads and makes the Ed25519 keys that requests are signed with, and makes the
// directory that publishes them (RFC 9421, RFC 8037, draft-ietf-webbotauth-httpsig-protocol-01).
//
// Start with [Load]. A private key leaves the package only as signatures.
package keyfile

// Where to change what.
//
//	which key files are accepted, and the messages about others:
//		parse.go for the contents, file.go for the file, and a vector in testdata
//	the directory of keys, and its header lines:
//		directory.go; as a page of the gate's own address: internal/gate/signing.go

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
)

// A Key is an Ed25519 key pair. However it is printed, encoded or logged, the text is "[key]".
type Key struct {
	id     string
	public ed25519.PublicKey
	// Sign is a closure, and not a field with the private key: package fmt prints unexported fields
	// of structs without calling their methods.
	sign func(message []byte) []byte
}

// New returns the Key of a private key, which must have ed25519.PrivateKeySize bytes.
func New(private ed25519.PrivateKey) *Key {
	public := private.Public().(ed25519.PublicKey)
	return &Key{
		id:     thumbprint(public),
		public: public,
		sign:   func(message []byte) []byte { return ed25519.Sign(private, message) },
	}
}

func thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ID returns the thumbprint of the public key (RFC 7638 and RFC 8037, appendix A.3): 43 characters
// of base64url.
func (k Key) ID() string { return k.id }

// Public returns the public key. The caller must not change it.
func (k Key) Public() ed25519.PublicKey { return k.public }

// Sign returns the signature of message, 64 bytes. Several goroutines may call it.
func (k Key) Sign(message []byte) []byte { return k.sign(message) }

const hidden = "[key]"

// String returns "[key]".
func (Key) String() string { return hidden }

// GoString returns "[key]".
func (Key) GoString() string { return hidden }

// Format writes "[key]" for every verb.
func (Key) Format(s fmt.State, _ rune) { fmt.Fprint(s, hidden) }

// MarshalText returns "[key]", for encoding/json too.
func (Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue returns "[key]".
func (Key) LogValue() slog.Value { return slog.StringValue(hidden) }
