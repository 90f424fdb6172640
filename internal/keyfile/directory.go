package keyfile

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// DirectoryType is the media type of a directory.
const DirectoryType = "application/http-message-signatures-directory+json"

// headersFor is how long the signatures of a directory are valid.
const headersFor = 90 * 24 * time.Hour

// Unique returns keys without repetitions.
func Unique(keys []*Key) (once []*Key) {
	seen := map[string]bool{}
	for _, k := range keys {
		if !seen[k.id] {
			seen[k.id] = true
			once = append(once, k)
		}
	}
	return once
}

// Directory returns the JWK Set of the public keys of keys (RFC 7517, section 5; RFC 8037), in one
// line without an end of line. No key may be in keys twice, see [Unique].
func Directory(keys []*Key) []byte {
	var b strings.Builder
	b.WriteString(`{"keys":[`)
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"kty":"OKP","crv":"Ed25519","kid":"%s","x":"%s","use":"sig"}`, k.id, base64.RawURLEncoding.EncodeToString(k.public))
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// A Header is a header field of a response with a directory.
type Header struct{ Name, Value string }

// Headers returns the header fields of a response with the [Directory] of keys. Authority is that of
// the agent's origin in canonical form, such as bots.example.com or bots.example.com:8443. Every key
// signs the response: verifiers count only the keys with a signature, since a directory could
// otherwise list the key of another agent. The signatures are valid for 90 days from created.
func Headers(keys []*Key, authority string, created time.Time) []Header {
	sum := sha256.Sum256(Directory(keys))
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	var inputs, signatures []string
	for i, k := range keys {
		params := fmt.Sprintf(`%s;created=%d;expires=%d;keyid="%s";tag="%s"`, components, created.Unix(), created.Add(headersFor).Unix(), k.id, directoryTag)
		label := fmt.Sprintf("binding%d=", i)
		inputs = append(inputs, label+params)
		signatures = append(signatures, label+":"+base64.StdEncoding.EncodeToString(k.Sign(signatureBase(authority, digest, params)))+":")
	}
	return []Header{
		{"Content-Type", DirectoryType},
		{"Cache-Control", "max-age=86400"},
		{"Content-Digest", digest},
		{"Signature-Input", strings.Join(inputs, ", ")},
		{"Signature", strings.Join(signatures, ", ")},
	}
}

const (
	components   = `("@authority";req "content-digest")`
	directoryTag = "http-message-signatures-directory"
)

// signatureBase returns what the signature of a directory covers (RFC 9421, section 2.5).
func signatureBase(authority, digest, params string) []byte {
	return fmt.Appendf(nil, "\"@authority\";req: %s\n\"content-digest\": %s\n\"@signature-params\": %s", authority, digest, params)
}
