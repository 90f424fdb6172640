package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
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
)

// rootPrefix begins the name of every root that this package makes.
const rootPrefix = "robotsgate CA "

func ours(c *x509.Certificate) bool { return strings.HasPrefix(c.Subject.CommonName, rootPrefix) }

// rootLife is how long a new root is valid.
const rootLife = 5 // years

// Open returns the authority in dir, and makes it at first use. Several processes
// that do so at once get the same one.
func Open(dir string) (*Authority, error) {
	return newAuthority(func() (*pair, error) { return openPair(dir) })
}

// openPair loads the pair, after it has made the files that are missing. The key is made
// first.
func openPair(dir string) (*pair, error) {
	certFile, keyFile := filepath.Join(dir, certName), filepath.Join(dir, keyName)
	noCert, err := missing(certFile)
	if err != nil {
		return nil, adviseFolder(err)
	}
	noKey, err := missing(keyFile)
	switch {
	case err != nil:
		return nil, err
	case noKey && !noCert:
		return nil, fmt.Errorf("%s is missing, the key of %s: put it back, or remove the certificate to get a new CA", keyFile, certFile)
	case noKey:
		err = createKey(keyFile)
	}
	if err == nil && noCert {
		err = createCert(certFile, keyFile)
	}
	if err != nil {
		return nil, err
	}
	p, err := load(certFile, keyFile)
	if errors.Is(err, errMismatch) || errors.Is(err, errNoPEM) {
		err = fmt.Errorf("%w; to get a new CA: robotsgate ca --renew", err)
	}
	return p, err
}

func missing(path string) (bool, error) {
	// Lstat, so that a dangling link is not missing: an operator made it.
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

func createKey(keyFile string) error {
	if err := os.MkdirAll(filepath.Dir(keyFile), 0o700); err != nil {
		return adviseFolder(err)
	}
	_, data, err := newKey()
	if err != nil {
		return err
	}
	return place(keyFile, data, 0o600, ifMissing)
}

// adviseFolder adds to an error about the folder how to choose another.
func adviseFolder(err error) error {
	return fmt.Errorf("%w; name a folder in which this user may write, with data_dir in the configuration, or set HOME", err)
}

// newKey returns a private key, also in the form of its file.
func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// createCert makes the certificate for an existing key, also one that an
// interrupted first start has left.
func createCert(certFile, keyFile string) error {
	key, err := readKey(keyFile)
	if err != nil {
		return err
	}
	der, err := newRoot(key, time.Now())
	if err != nil {
		return err
	}
	return place(certFile, encodeCertificate(der), 0o644, ifMissing)
}

func newRoot(key crypto.Signer, now time.Time) ([]byte, error) {
	template := &x509.Certificate{
		// The id tells the CAs of several machines apart in a trust store.
		Subject:               pkix.Name{CommonName: rootPrefix + rand.Text()[:8]},
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

// skew is how far a client's clock may be behind.
const skew = 24 * time.Hour
