//go:build linux && (amd64 || arm64)

package confine

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf16"

	"golang.org/x/sys/unix"
)

// bundles are the files with the system's certificate authorities.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Gentoo, Arch, Alpine
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // CentOS, RHEL 7
	"/etc/ssl/ca-bundle.pem",                            // SUSE
	"/etc/pki/tls/cacert.pem",                           // OpenELEC
	"/etc/ssl/cert.pem",                                 // Alpine
	"/usr/lib/ssl/cert.pem",                             // where Debian's OpenSSL looks
}

// javaStores are where Java installations have theirs.
var javaStores = []string{
	"/etc/ssl/certs/java/cacerts", // Debian
	"/etc/pki/java/cacerts",       // Fedora
	"/usr/lib/jvm/*/lib/security/cacerts",
	"/usr/lib/jvm/*/jre/lib/security/cacerts",
}

// A trust is the files with certificate authorities that the gate's replace.
type trust struct{ pem, java []string }

// findTrust looks for the files that programs of the command's PATH read.
func findTrust() (t trust) {
	t.pem, t.java = slices.Clone(bundles), slices.Clone(javaStores)
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		// Of an installation of Python, or a virtual environment: the certifi of Requests and HTTPX.
		t.pem = append(t.pem, filepath.Join(filepath.Dir(dir), "lib/python3*/*-packages/certifi/cacert.pem"))
	}
	home, java := os.Getenv("JAVA_HOME"), ""
	if path, err := exec.LookPath("java"); err == nil {
		java, _ = filepath.EvalSymlinks(path)
	}
	for _, dir := range []string{home, filepath.Dir(filepath.Dir(java))} {
		if filepath.IsAbs(dir) {
			t.java = append(t.java, filepath.Join(dir, "lib/security/cacerts"))
		}
	}
	return trust{existing(t.pem), existing(t.java)}
}

// existing returns the files that match patterns, without symbolic links, each once.
func existing(patterns []string) (files []string) {
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(pattern)
		for _, path := range matches {
			if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(files, real) {
				files = append(files, real)
			}
		}
	}
	return files
}

// replace puts the gate's bundle in the place of the files.
func (t trust) replace(bundle string) error {
	if bundle == "" {
		return nil
	}
	data, err := os.ReadFile(bundle)
	if err != nil {
		return failed("read the certificate authorities", err)
	}
	if err := replaceWith("bundle.pem", data, t.pem); err != nil || len(t.java) == 0 {
		return err
	}
	return replaceWith("cacerts", javaStore(data, time.Now()), t.java)
}

// replaceWith puts a copy of data in the place of files.
func replaceWith(name string, data []byte, files []string) error {
	path := filepath.Join(scratch, name)
	if err := os.WriteFile(path, data, 0o444); err != nil {
		return failed("copy the certificate authorities", err)
	}
	for _, file := range files {
		if err := unix.Mount(path, file, "", unix.MS_BIND, ""); err != nil && !unreachable(file, err) && err != unix.ENOENT {
			return failed("replace "+file, err)
		}
	}
	return nil
}

// storePassword is the one that every Java installation has for its file of certificate authorities.
const storePassword = "changeit"

// javaStore returns the certificates of a PEM file in Java's format JKS, in which all versions of Java
// read their certificate authorities: sun.security.provider.JavaKeyStore.
func javaStore(bundle []byte, now time.Time) []byte {
	var entries []byte
	count := uint32(0)
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		const trustedCertificate = 2
		entries = binary.BigEndian.AppendUint32(entries, trustedCertificate)
		entries = appendJavaString(entries, fmt.Sprintf("ca%d", count))
		entries = binary.BigEndian.AppendUint64(entries, uint64(now.UnixMilli()))
		entries = appendJavaString(entries, "X.509")
		entries = binary.BigEndian.AppendUint32(entries, uint32(len(block.Bytes)))
		entries = append(entries, block.Bytes...)
		count++
	}
	store := binary.BigEndian.AppendUint32(nil, 0xfeedfeed)
	store = binary.BigEndian.AppendUint32(store, 2) // version
	store = binary.BigEndian.AppendUint32(store, count)
	store = append(store, entries...)
	var seed []byte
	for _, c := range utf16.Encode([]rune(storePassword)) {
		seed = binary.BigEndian.AppendUint16(seed, c)
	}
	seed = append(seed, "Mighty Aphrodite"...)
	sum := sha1.Sum(append(seed, store...))
	return append(store, sum[:]...)
}

func appendJavaString(to []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(to, uint16(len(s))), s...)
}
