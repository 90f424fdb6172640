//go:build linux && (amd64 || arm64)

package confine

import (
	"os"
	"path/filepath"
	"slices"

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

// trustFiles returns the files with certificate authorities that programs of the command's PATH read.
func trustFiles() []string {
	patterns := slices.Clone(bundles)
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		// Of an installation of Python, or a virtual environment: the certifi of Requests and HTTPX.
		patterns = append(patterns, filepath.Join(filepath.Dir(dir), "lib/python3*/*-packages/certifi/cacert.pem"))
	}
	return existing(patterns)
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

// replaceWith puts a copy of data in the place of files.
func replaceWith(name string, data []byte, files []string) error {
	path := filepath.Join(scratch, name)
	if err := os.WriteFile(path, data, 0o444); err != nil {
		return failed("copy "+name, err)
	}
	for _, file := range files {
		if err := unix.Mount(path, file, "", unix.MS_BIND, ""); err != nil && !unreachable(file, err) && err != unix.ENOENT {
			return failed("replace "+file, err)
		}
	}
	return nil
}
