package keyfile

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
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
	return nil, notPEM(bytes.TrimSpace(data))
}

// contents returns what is in a block of PKCS #8.
func contents(block *pem.Block) ([]byte, error) {
	const convert = "; requests are signed with Ed25519 keys in PKCS #8 only"
	switch {
	case block.Type == "ENCRYPTED PRIVATE KEY", strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return nil, errors.New("the key in it is encrypted, and a gate that starts can ask for no password: " + needed)
	case block.Type == "OPENSSH PRIVATE KEY":
		return nil, errors.New("it is a key in the form of OpenSSH" + convert)
	case block.Type == "RSA PRIVATE KEY":
		return nil, errors.New("it is an RSA key" + convert)
	case block.Type == "EC PRIVATE KEY":
		return nil, errors.New("it is an EC key" + convert)
	case block.Type == "DSA PRIVATE KEY":
		return nil, errors.New("it is a DSA key" + convert)
	case block.Type != "PRIVATE KEY":
		return nil, errors.New("it is a private key of another form" + convert)
	}
	return block.Bytes, nil
}

// notPEM returns an error that names the probable form of data, which has no PEM block.
func notPEM(data []byte) error {
	_, errURL := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(data), "="))
	_, errStd := base64.RawStdEncoding.DecodeString(strings.TrimRight(string(data), "="))
	const sequence = 0x30 // the first byte of every key in DER
	switch {
	case len(data) == 0:
		return errors.New("it is empty: " + needed)
	case data[0] == '{':
		return errors.New("it is JSON, perhaps a JWK: " + needed)
	case data[0] == sequence && bytes.ContainsFunc(data, func(r rune) bool { return r < '\t' || r > '~' }):
		return errors.New("it is DER, not PEM: " + needed)
	case len(data) >= 40 && (errURL == nil || errStd == nil):
		return errors.New("it is base64 without the lines of PEM around it, or a bare seed: " + needed)
	}
	return errors.New("there is no PEM block in it: " + needed)
}

// A privateKeyInfo is OneAsymmetricKey of RFC 5958, section 2. Version 1 has no public key.
type privateKeyInfo struct {
	Version    int
	Algorithm  pkix.AlgorithmIdentifier
	PrivateKey []byte
	Attributes asn1.RawValue  `asn1:"optional,tag:0"`
	PublicKey  asn1.BitString `asn1:"optional,tag:1"`
}

// kinds are the algorithms of keys that are often in such files.
var kinds = map[string]string{
	"1.2.840.113549.1.1.1":  "an RSA key",
	"1.2.840.113549.1.1.10": "an RSA key",
	"1.2.840.10045.2.1":     "an EC key",
	"1.2.840.10040.4.1":     "a DSA key",
	"1.3.101.110":           "an X25519 key, which can't sign",
	"1.3.101.111":           "an X448 key, which can't sign",
	"1.3.101.113":           "an Ed448 key",
}

const ed25519OID = "1.3.101.112" // RFC 8410, section 3

// parsePKCS8 returns the Ed25519 key in der.
func parsePKCS8(der []byte) (ed25519.PrivateKey, error) {
	damaged := errors.New("the key in it is damaged: " + needed)
	var info privateKeyInfo
	rest, err := asn1.Unmarshal(der, &info)
	if err != nil || len(rest) > 0 || info.Version < 0 || info.Version > 1 { // version 2 has the number 1
		return nil, damaged
	}
	if oid := info.Algorithm.Algorithm.String(); oid != ed25519OID {
		kind := kinds[oid]
		if kind == "" {
			kind = "a key of another kind"
		}
		return nil, errors.New("it is " + kind + ": " + needed)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	private, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, damaged
	}
	if p := info.PublicKey.Bytes; len(p) > 0 && !bytes.Equal(p, private.Public().(ed25519.PublicKey)) {
		return nil, errors.New("the public key in it does not belong to the private key: " + needed)
	}
	return private, nil
}
