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

// Renew replaces the authority in dir by a new one. The new certificate file and
// bundle keep the old certificate until it expires, so that clients with them trust
// a gate before and after it uses the new CA. The old key is removed.
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
	// Written before anything changes, since writing may fail.
	temp, err := writeTemp(keyFile, data, 0o600)
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp)
	// If the process ends after any of the following steps, the certificate is
	// missing and Open completes the renewal, with the old certificate.
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
	// This replaces an existing file: a gate that starts now may have read the old
	// key, and written a certificate for it.
	if err := WriteFile(certFile, data); err != nil {
		return nil, err
	}
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explain(aside, err)
	}
	return Open(dir)
}

// renewable returns an error if the key belongs to another user than user, since
// the gate of that user could not read the new key. Root is allowed to renew it, and
// the new key then belongs to that user.
func renewable(keyFile string, user int) error {
	if o, known := ownerOf(keyFile); known && o.uid != user && user != root {
		return fmt.Errorf("%s belongs to user %d, whose gate could not read a new one of yours: renew it as that user, or as root", keyFile, o.uid)
	}
	return nil
}

// rootFile returns the content of ca.pem: a new root for key, and after it the CAs
// that it replaces, if a renewal has put any aside.
func rootFile(key crypto.Signer, dir string) ([]byte, error) {
	now := time.Now()
	der, err := newRoot(key, now)
	if err != nil {
		return nil, err
	}
	data := encodeCertificate(der)
	// The new CA does not depend on the old ones, so they may be unreadable.
	old, _ := readCertificates(filepath.Join(dir, asideName))
	for _, c := range former(old, now) {
		data = append(data, encodeCertificate(c.Raw)...)
	}
	return data, nil
}

// maxFormer bounds the replaced CAs in a file. The most recent come first.
const maxFormer = 3

// former returns the certificates that are CAs made by this package and have not
// expired, at most maxFormer.
func former(certs []*x509.Certificate, now time.Time) []*x509.Certificate {
	var out []*x509.Certificate
	for _, c := range certs {
		if ours(c) && selfSigned(c) && now.Before(c.NotAfter) && len(out) < maxFormer {
			out = append(out, c)
		}
	}
	return out
}
