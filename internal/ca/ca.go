// Package ca is the certificate authority with which the gate looks into TLS:
// its root, the leaves it signs, and the bundle that clients trust.
package ca

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// An Authority signs certificates for hosts. It is safe for concurrent use.
type Authority struct {
	cert     *x509.Certificate
	key      crypto.Signer
	chain    [][]byte // what a leaf is sent with: the certificates between it and the root
	pem      []byte
	certFile string
	warnings []string
	leaves   leaves
}

// Load returns the authority whose certificate and private key are in the two
// PEM files. The first certificate is the one that signs; the others are its
// chain. The key may be RSA, ECDSA or Ed25519.
func Load(certFile, keyFile string) (*Authority, error) {
	a, err := load(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	if err := a.checkTime(time.Now(), "get a new one from whoever issued it"); err != nil {
		return nil, err
	}
	return a, nil
}

// load does all but look at the clock.
func load(certFile, keyFile string) (*Authority, error) {
	certs, err := readCertificates(certFile)
	if err != nil {
		return nil, err
	}
	key, err := readKey(keyFile)
	if err != nil {
		return nil, err
	}
	a := &Authority{cert: certs[0], key: key, certFile: certFile}
	a.leaves.init(maxLeaves, a.cert.NotAfter)
	if !equalKeys(a.cert.PublicKey, key.Public()) {
		return nil, &mismatchError{keyFile, certFile}
	}
	switch {
	case !a.cert.IsCA || !a.cert.BasicConstraintsValid:
		return nil, fmt.Errorf("%s: the first certificate is not a CA's: it must have the basic constraint CA:TRUE", certFile)
	case a.cert.KeyUsage != 0 && a.cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, fmt.Errorf("%s: the CA may not sign certificates: its key usage must include certificate signing", certFile)
	}
	for _, c := range certs {
		if !selfSigned(c) {
			a.chain = append(a.chain, c.Raw)
		}
		a.pem = append(a.pem, encodeCertificate(c.Raw)...)
	}
	a.warnings = exposed(keyFile)
	return a, nil
}

// exposed warns if other users could take the key or put another in its place.
func exposed(keyFile string) []string {
	if runtime.GOOS == "windows" {
		return nil // its permissions are not in the mode
	}
	var w []string
	if info, err := os.Stat(keyFile); err == nil && info.Mode().Perm()&0o077 != 0 {
		w = append(w, fmt.Sprintf("%s can be read by other users of this machine: chmod 600 it", keyFile))
	}
	dir := filepath.Dir(keyFile)
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o002 != 0 {
		w = append(w, fmt.Sprintf("%s can be written by every user of this machine, so the CA's key can be replaced: chmod 700 it", dir))
	}
	return w
}

// PEM returns the CA's certificate, followed by its chain if it has one. It
// never holds a key, whatever else the file does.
func (a *Authority) PEM() []byte { return bytes.Clone(a.pem) }

// CertFile returns the path of the file with the CA's certificate.
func (a *Authority) CertFile() string { return a.certFile }

// Certificate returns the certificate that signs. It must not be changed.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// soon is how long before its end a CA deserves a warning.
const soon = 30 * 24 * time.Hour

// Warnings returns what works but should be mended, as of now.
func (a *Authority) Warnings() []string {
	w := slices.Clone(a.warnings)
	if end := a.cert.NotAfter; time.Until(end) < soon {
		w = append(w, fmt.Sprintf("%s: the CA expires on %s: make or get a new one", a.certFile, end.UTC().Format(time.DateOnly)))
	}
	return w
}

// checkTime returns an error that ends in advice if the CA is not valid now.
func (a *Authority) checkTime(now time.Time, advice string) error {
	switch {
	case now.After(a.cert.NotAfter):
		return fmt.Errorf("%s: the CA expired on %s: %s", a.certFile, a.cert.NotAfter.UTC().Format(time.DateOnly), advice)
	case now.Before(a.cert.NotBefore):
		return fmt.Errorf("%s: the CA is not valid before %s: check this machine's clock", a.certFile, a.cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// A mismatchError is its own type because it may be about a pair that another
// process is replacing at this moment.
type mismatchError struct{ keyFile, certFile string }

func (e *mismatchError) Error() string {
	return fmt.Sprintf("%s is not the key of %s: use the two that belong together", e.keyFile, e.certFile)
}

func equalKeys(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// selfSigned recognises a root, which clients have and need not be sent.
func selfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(c) == nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var errNoPEM = errors.New("nothing in PEM form in it (-----BEGIN …-----): convert it with openssl")
