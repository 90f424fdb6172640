package ca

import (
	"cmp"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("%s: is a pipe, a socket or a device, which can't be read again: use a file", path)
	}
	return os.ReadFile(path)
}

// readPEM returns the blocks of a PEM file, at least one.
func readPEM(path string) ([]*pem.Block, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	var blocks []*pem.Block
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errNoPEM)
	}
	return blocks, nil
}

// readCertificates returns the certificates of a PEM file, at least one.
func readCertificates(path string) ([]*x509.Certificate, error) {
	blocks, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for _, block := range blocks {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d is damaged: export it again as PEM: %w", path, len(certs)+1, err)
		}
		certs = append(certs, c)
	}
	if len(certs) == 0 {
		return nil, fmt.Errorf("%s: no certificate in it but a %s: is it the right file?", path, strings.ToLower(blocks[0].Type))
	}
	return certs, nil
}

// readKey returns the first private key of a PEM file. Its errors do not contain
// the key.
func readKey(path string) (crypto.Signer, error) {
	blocks, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(blocks, func(b *pem.Block) bool { return strings.HasSuffix(b.Type, "PRIVATE KEY") })
	if i < 0 {
		return nil, fmt.Errorf("%s: no private key in it but a %s: is it the right file?", path, strings.ToLower(blocks[0].Type))
	}
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
	} {
		key, err := parse(blocks[i].Bytes)
		if signer, ok := key.(crypto.Signer); ok && err == nil {
			return signer, nil
		}
	}
	return nil, fmt.Errorf("%s: the private key is damaged, has a passphrase or is not understood: write it as PKCS #8 with openssl pkey", path)
}

// place makes a file beside path, and moves it there when it is complete. No process sees a part of it.
func place(path string, data []byte, mode fs.FileMode, move func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return move(f.Name(), path)
}

// ifMissing moves a file, or leaves the one that is there: of several processes that make a file, the first one wins.
func ifMissing(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return os.Rename(from, to) // the file system has no links
}

// WriteFile replaces the content of path atomically. All users can read it.
func WriteFile(path string, data []byte) error { return place(path, data, 0o644, os.Rename) }
