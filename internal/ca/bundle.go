package ca

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// marker is the first line of every bundle we write. By it we know our own
// when a variable such as SSL_CERT_FILE leads back to one.
const marker = "# robotsgate: the system's certificate authorities and the gate's own\n"

// ErrNoRoots says that the system's certificate authorities were not found.
var ErrNoRoots = errors.New("the system's certificate authorities were not found: install the package ca-certificates, or set SSL_CERT_FILE to a PEM file with them")

// rootFiles are where systems keep their roots; the first that is there counts.
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

// rootDirs hold one root in a file; all of the first that has any count.
var rootDirs = []string{
	"/etc/ssl/certs",
	"/etc/pki/tls/certs",
	"/usr/local/share/certs",
	"/etc/openssl/certs",
	"/etc/certs/CA",
	"/system/etc/security/cacerts", // Android
}

// SystemRoots returns the certificate authorities that this machine trusts, as
// PEM, and the file or folder they come from. SSL_CERT_FILE goes first, unless
// it names a bundle of ours. If there are none the error is [ErrNoRoots].
func SystemRoots() ([]byte, string, error) {
	return systemRoots(os.Getenv("SSL_CERT_FILE"), rootFiles, rootDirs)
}

func systemRoots(first string, files, dirs []string) ([]byte, string, error) {
	if first != "" {
		if data, err := readFile(first); err != nil || !onlyGates(data) {
			files = append([]string{first}, files...)
		}
	}
	for _, file := range files {
		data, err := readFile(file)
		if err != nil || isBundle(data) {
			continue
		}
		if roots := certificatesOf(data, nil); len(roots) > 0 {
			return roots, file, nil
		}
	}
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		var roots []byte
		seen := map[[32]byte]bool{} // hashed names link to the same files
		for _, e := range entries {
			if data, err := readFile(filepath.Join(dir, e.Name())); err == nil && !isBundle(data) {
				roots = append(roots, certificatesOf(data, seen)...)
			}
		}
		if len(roots) > 0 {
			return roots, dir, nil
		}
	}
	return nil, "", ErrNoRoots
}

// certificatesOf returns the certificates in data and nothing else that may be
// there; those in seen are left out.
func certificatesOf(data []byte, seen map[[32]byte]bool) []byte {
	var out []byte
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		sum := sha256.Sum256(block.Bytes)
		if block.Type != "CERTIFICATE" || seen[sum] {
			continue
		}
		if seen != nil {
			seen[sum] = true
		}
		out = append(out, encodeCertificate(block.Bytes)...)
	}
	return out
}

// onlyGates recognises a file of nothing but CAs of gates, such as our ca.pem:
// as the system's roots it would leave a client without any.
func onlyGates(data []byte) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !ours(c) {
			return false
		}
	}
	return true
}

func isBundle(data []byte) bool { return bytes.HasPrefix(data, []byte(marker)) }

// Bundle returns systemRoots and what [Authority.PEM] does together, for clients
// whose setting replaces the roots they know.
func (a *Authority) Bundle(systemRoots []byte) []byte {
	return slices.Concat([]byte(marker), a.PEM(), systemRoots)
}

// WriteBundle keeps bundle.pem in dir up to date and returns its path. If the
// system's roots are not found it holds the CA alone, and err is [ErrNoRoots]
// beside a path that is good: enough for hosts that are intercepted.
func (a *Authority) WriteBundle(dir string) (path string, err error) {
	roots, _, rootsErr := SystemRoots()
	path = filepath.Join(dir, bundleName)
	want := a.Bundle(roots)
	if have, err := readFile(path); err == nil && bytes.Equal(have, want) {
		return path, rootsErr
	}
	if err := makeDir(dir); err != nil {
		return "", err
	}
	if err := replace(path, want, 0o644); err != nil {
		return "", err
	}
	return path, rootsErr
}
