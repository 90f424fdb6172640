package ca

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// marker is the first line of every bundle. It shows that SSL_CERT_FILE, or a
// similar variable, names a bundle of a gate.
const marker = "# robotsgate: the system's certificate authorities and the gate's own\n"

// ErrNoRoots means that the system's certificate authorities were not found.
var ErrNoRoots = errors.New("the system's certificate authorities were not found: install the package ca-certificates, or set SSL_CERT_FILE to a PEM file with them")

// rootFiles are the files in which systems keep their roots. The first that exists
// is used.
var rootFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Gentoo, Arch, Alpine
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // CentOS, RHEL 7
	"/etc/ssl/ca-bundle.pem",                            // SUSE
	"/etc/pki/tls/cacert.pem",                           // OpenELEC
	"/etc/ssl/cert.pem",                                 // macOS, Alpine, OpenBSD
	"/usr/local/etc/ssl/cert.pem",                       // FreeBSD
	"/usr/local/share/certs/ca-root-nss.crt",            // FreeBSD, DragonFly
	"/etc/openssl/certs/ca-certificates.crt",            // NetBSD
	"/etc/certs/ca-certificates.crt",                    // Solaris, illumos
}

// SystemRoots returns the certificate authorities that this machine trusts, as
// PEM, and the file with them. The file in SSL_CERT_FILE comes first,
// unless it is a bundle or the CA of a gate. If there are none the error is
// [ErrNoRoots].
func SystemRoots() ([]byte, string, error) {
	return systemRoots(os.Getenv("SSL_CERT_FILE"), rootFiles)
}

func systemRoots(first string, files []string) ([]byte, string, error) {
	if first != "" {
		if data, err := readFile(first); err != nil || !onlyGates(data) {
			files = append([]string{first}, files...)
		}
	}
	for _, file := range files {
		if roots := rootsIn(file); len(roots) > 0 {
			return roots, file, nil
		}
	}
	return nil, "", ErrNoRoots
}

// rootsIn returns the certificates in a file as PEM. It returns none for a file that cannot be
// read, and for the bundle of a gate.
func rootsIn(file string) (out []byte) {
	data, err := readFile(file)
	if err != nil || bytes.HasPrefix(data, []byte(marker)) {
		return nil
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			out = append(out, encodeCertificate(block.Bytes)...)
		}
	}
	return out
}

// onlyGates reports whether data has only CAs of gates, such as ca.pem, so that it
// cannot be the system's roots.
func onlyGates(data []byte) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !ours(c) {
			return false
		}
	}
	return true
}

// Bundle returns the certificates of [Authority.PEM] and systemRoots, for clients
// with a setting that replaces all their roots.
func (a *Authority) Bundle(systemRoots []byte) []byte {
	return slices.Concat([]byte(marker), a.PEM(), systemRoots)
}

// ClientFiles are the files that make clients trust the CA.
type ClientFiles struct {
	Cert   string // the certificate alone, for clients that add it to their roots
	Bundle string // with the system's roots, for clients that replace their roots by it
	Wgetrc string // names the bundle, for wget and wget2, which read no variable for it
}

// WriteClientFiles brings these files in dir up to date. If the system's roots are not found the
// error is [ErrNoRoots], and the files can be used nevertheless: the bundle then has the CA alone,
// which is enough for intercepted hosts.
func (a *Authority) WriteClientFiles(dir string) (ClientFiles, error) {
	roots, _, rootsErr := SystemRoots()
	f := ClientFiles{Cert: a.CertFile(), Bundle: filepath.Join(dir, bundleName), Wgetrc: filepath.Join(dir, "wgetrc")}
	wgetrc := "# Written by robotsgate.\nca_certificate = " + f.Bundle + "\n"
	if err := cmp.Or(os.MkdirAll(dir, 0o700), update(f.Bundle, a.Bundle(roots)), update(f.Wgetrc, []byte(wgetrc))); err != nil {
		return ClientFiles{}, err
	}
	return f, rootsErr
}

// update writes a file unless it has this content: clients may watch it.
func update(path string, want []byte) error {
	if have, err := readFile(path); err == nil && bytes.Equal(have, want) {
		return nil
	}
	return WriteFile(path, want)
}
