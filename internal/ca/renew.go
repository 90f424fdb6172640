package ca

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"time"
)

// Renew replaces the authority in dir by a new one. The new certificate file and
// bundle keep the old certificate until it expires, so that clients with them trust
// a gate before and after it uses the new CA. The old key is removed.
func Renew(dir string) (*Authority, error) {
	certFile, keyFile := filepath.Join(dir, certName), filepath.Join(dir, keyName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, keyData, err := newKey()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	root, err := newRoot(key, now)
	if err != nil {
		return nil, err
	}
	certData := encodeCertificate(root)
	// The new CA does not depend on the old ones, so they may be unreadable.
	old, _ := readCertificates(certFile)
	for _, c := range former(old, now) {
		certData = append(certData, encodeCertificate(c.Raw)...)
	}
	// The key comes last: until then, the old one and its certificate are in use.
	if err := WriteFile(certFile, certData); err != nil {
		return nil, err
	}
	if err := place(keyFile, keyData, 0o600, os.Rename); err != nil {
		return nil, err
	}
	return Open(dir)
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
