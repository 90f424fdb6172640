package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Names of the files in the folder that Open is given.
const (
	certName   = "ca.pem"
	keyName    = "ca-key.pem"
	bundleName = "bundle.pem"
	asideName  = "ca-old.pem" // only while the CA is renewed
)

// rootPrefix starts the name of every root that we make.
const rootPrefix = "robotsgate CA "

func ours(c *x509.Certificate) bool { return strings.HasPrefix(c.Subject.CommonName, rootPrefix) }

// rootLife is how long a root that we make holds.
const rootLife = 5 // years

// Open returns the authority that is kept in dir, and makes it on first start.
// Several processes may do so at once; all get the same one.
func Open(dir string) (*Authority, error) {
	return newAuthority(func() (*pair, error) { return openPair(dir) })
}

func openPair(dir string) (*pair, error) {
	certFile, keyFile := filepath.Join(dir, certName), filepath.Join(dir, keyName)
	// Both files are there, or we add one and look again. More rounds are
	// needed only while another process renews or, where there are no hard
	// links, is in the middle of writing.
	for round := 0; ; round++ {
		p, err := openOnce(certFile, keyFile)
		switch {
		case p != nil:
			if err := p.checkTime(time.Now(), "make a new one with robotsgate ca --renew, and give it to clients"); err != nil {
				return nil, err
			}
			return p, nil
		case err == nil && round < rounds:
			continue
		case err == nil:
			return nil, fmt.Errorf("%s: the CA's files keep vanishing: is something else removing them?", dir)
		case !passing(err):
			return nil, err
		case round >= rounds:
			return nil, fmt.Errorf("%w; to get a new CA: robotsgate ca --renew", err)
		}
		time.Sleep(pause)
	}
}

// For how long Open waits for another process to finish.
const (
	rounds = 10
	pause  = 10 * time.Millisecond
)

// passing reports whether err may be about files that are being replaced.
func passing(err error) bool {
	_, mismatch := errors.AsType[*mismatchError](err)
	// The certificate may be gone between a look and a read: Renew removes it first.
	return mismatch || errors.Is(err, errNoPEM) || errors.Is(err, fs.ErrNotExist)
}

// openOnce loads the pair; if a file is missing it makes that one and returns
// neither pair nor error.
func openOnce(certFile, keyFile string) (*pair, error) {
	noCert, err := missing(certFile)
	if err != nil {
		return nil, err
	}
	noKey, err := missing(keyFile)
	if err != nil {
		return nil, err
	}
	switch {
	case noKey && noCert:
		return nil, createKey(keyFile)
	case noKey:
		// The key is made first, so nobody is just about to write it.
		if noCert, err = missing(certFile); err != nil || noCert {
			return nil, err
		}
		return nil, fmt.Errorf("%s is missing, the key of %s: put it back, or remove the certificate to get a new CA", keyFile, certFile)
	case noCert:
		return nil, createCert(certFile, keyFile)
	}
	return load(certFile, keyFile)
}

func missing(path string) (bool, error) {
	// Lstat: a link that leads nowhere is not ours to fill.
	switch _, err := os.Lstat(path); {
	case err == nil:
		return false, nil
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	default:
		return false, explain(path, err)
	}
}

func createKey(keyFile string) error {
	if err := makeDir(filepath.Dir(keyFile)); err != nil {
		return err
	}
	data, err := newKey()
	if err != nil {
		return err
	}
	return createExclusive(keyFile, data, 0o600)
}

func newKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// createCert makes the certificate for the key that is there, which is also
// how a start that was cut short after the key is mended.
func createCert(certFile, keyFile string) error {
	key, err := readKey(keyFile)
	if err != nil {
		return err
	}
	data, err := rootFile(key, filepath.Dir(certFile))
	if err != nil {
		return err
	}
	return createExclusive(certFile, data, 0o644)
}

func newRoot(key crypto.Signer, now time.Time) ([]byte, error) {
	id := make([]byte, 4)
	rand.Read(id) // never fails
	template := &x509.Certificate{
		SerialNumber: newSerial(),
		// The id tells the CAs of several machines apart in a trust store.
		Subject:               pkix.Name{CommonName: rootPrefix + hex.EncodeToString(id)},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.AddDate(rootLife, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // it signs leaves, no further CAs
	}
	// The subject key id is derived from the key by package x509.
	return x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
}

// skew is how far a client's clock may be behind ours.
const skew = 24 * time.Hour

// newSerial returns 128 random bits: two CAs with one name and number confuse
// the certificate stores of browsers.
func newSerial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b)
	b[0] &= 0x7f // positive, and at most 20 octets in DER
	b[0] |= 0x40 // and never 0
	return new(big.Int).SetBytes(b)
}
