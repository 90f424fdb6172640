package keyfile

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"regexp"
	"strings"
)

// Parse returns the key in the contents of a key file, see [Load]. Its errors have nothing of data.
func Parse(data []byte) (*Key, error) {
	block, err := privateBlock(data)
	if err != nil {
		return nil, err
	}
	private, err := parsePKCS8(block)
	if err != nil {
		return nil, err
	}
	key := New(private)
	if key.id == testKeyID {
		return nil, errors.New("it is the test key that RFC 9421 publishes, so it proves nothing")
	}
	return key, nil
}

// testKeyID is the thumbprint of the key test-key-ed25519 (RFC 9421, appendix B.1.4).
// draft-ietf-webbotauth-httpsig-protocol-01 says that it MUST NOT be used.
const testKeyID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"

const needed = "an Ed25519 private key in PEM (-----BEGIN PRIVATE KEY-----) is needed"

// beginsPrivate matches the first lines of private keys, also where the block is damaged.
// Package pem skips damaged blocks.
var beginsPrivate = regexp.MustCompile(`(?m)^-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[ \t\r]*$`)

// privateBlock returns the contents of the only private key in data.
func privateBlock(data []byte) ([]byte, error) {
	var private []*pem.Block
	public, other := false, false
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			private = append(private, block)
		case strings.HasSuffix(block.Type, "PUBLIC KEY"):
			public = true
		default:
			other = true
		}
	}
	begun := len(beginsPrivate.FindAllIndex(data, 2))
	switch {
	case begun > 1 || len(private) > 1:
		return nil, errors.New("more than one private key in it: exactly one Ed25519 key is needed")
	case begun > len(private):
		return nil, errors.New("the PEM block in it is damaged or cut short: " + needed)
	case len(private) == 1:
		return contents(private[0])
	case public:
		return nil, errors.New("it has a public key only: " + needed)
	case other:
		return nil, errors.New("it has no private key: " + needed)
	}
	return nil, errors.New("there is no PEM block in it: " + needed)
}

// contents returns what is in a block of PKCS #8.
func contents(block *pem.Block) ([]byte, error) {
	if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
		return nil, errors.New("the key in it is encrypted, and a gate that starts can ask for no password: " + needed)
	}
	if block.Type != "PRIVATE KEY" {
		kind := cmp.Or(kinds[block.Type], "a private key of another form")
		return nil, errors.New("it is " + kind + "; requests are signed with Ed25519 keys in PKCS #8 only")
	}
	return block.Bytes, nil
}

// kinds are the types of blocks with keys in older forms.
var kinds = map[string]string{
	"OPENSSH PRIVATE KEY": "a key in the form of OpenSSH",
	"RSA PRIVATE KEY":     "an RSA key",
	"EC PRIVATE KEY":      "an EC key",
}

// parsePKCS8 returns the Ed25519 key in der.
func parsePKCS8(der []byte) (ed25519.PrivateKey, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("the key in it is damaged or of another kind: " + needed)
	}
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return key, nil
	case *rsa.PrivateKey:
		return nil, errors.New("it is an RSA key: " + needed)
	case *ecdsa.PrivateKey:
		return nil, errors.New("it is an EC key: " + needed)
	}
	return nil, errors.New("it is an X25519 key, which can't sign: " + needed)
}
