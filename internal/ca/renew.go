package ca

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Renew replaces the authority in dir by a new one, whose file and bundle go on
// with the old one's certificate until that ends: clients that are given them trust
// a gate that has been restarted since, and one that has not. The old key is gone.
func Renew(dir string) (*Authority, error) {
	certFile, keyFile, aside := filepath.Join(dir, certName), filepath.Join(dir, keyName), filepath.Join(dir, asideName)
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	if err := renewable(keyFile, os.Geteuid()); err != nil {
		return nil, err
	}
	data, err := newKey()
	if err != nil {
		return nil, err
	}
	temp, err := writeTemp(keyFile, data, 0o600) // whatever forbids it is to happen before anything has changed
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp)
	// Without a certificate, any of the states in between is one that Open knows
	// how to finish, should we be stopped, and the old one is not forgotten.
	if err := os.Rename(certFile, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explain(certFile, err)
	}
	if err := os.Rename(temp, keyFile); err != nil {
		_ = os.Rename(aside, certFile) // if there was one
		return nil, explain(keyFile, err)
	}
	key, err := readKey(keyFile)
	if err != nil {
		return nil, err
	}
	if data, err = rootFile(key, dir); err != nil {
		return nil, err
	}
	// Replace, not create: a gate that starts now may have read the old key
	// before, and written a certificate for that.
	if err := replace(certFile, data, 0o644); err != nil {
		return nil, err
	}
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explain(aside, err)
	}
	return Open(dir)
}

// renewable returns an error if the key that is there is not user's, but another's,
// whose gate could not read a new one. Root gives the new one to that user.
func renewable(keyFile string, user int) error {
	if o, known := ownerOf(keyFile); known && o.uid != user && user != root {
		return fmt.Errorf("%s belongs to user %d, whose gate could not read a new one of yours: renew it as that user, or as root", keyFile, o.uid)
	}
	return nil
}

// rootFile returns what ca.pem is to hold: a new root for key, and after it the
// CAs that it replaces, if a renewal has put any aside.
func rootFile(key crypto.Signer, dir string) ([]byte, error) {
	now := time.Now()
	der, err := newRoot(key, now)
	if err != nil {
		return nil, err
	}
	data := encodeCertificate(der)
	// What can't be read is not trusted; the new CA is good without it.
	old, _ := readCertificates(filepath.Join(dir, asideName))
	for _, c := range former(old, now) {
		data = append(data, encodeCertificate(c.Raw)...)
	}
	return data, nil
}

// maxFormer bounds the CAs in a file, however often it is renewed. The one that a
// gate signs with is among the last.
const maxFormer = 3

// former returns those of certs that were the gate's own CA and have not ended.
func former(certs []*x509.Certificate, now time.Time) []*x509.Certificate {
	var out []*x509.Certificate
	for _, c := range certs {
		if ours(c) && selfSigned(c) && now.Before(c.NotAfter) && len(out) < maxFormer {
			out = append(out, c)
		}
	}
	return out
}
