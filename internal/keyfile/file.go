package keyfile

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// maxBytes bounds a key file. A key takes 119 bytes.
const maxBytes = 64 << 10

// Load reads the private key in the file at path: one PEM block PRIVATE KEY (PKCS #8, RFC 5958) with
// an Ed25519 key. Text around it and blocks of public keys and certificates are ignored. The file
// must be a regular one of at most 64 KiB; Load does not wait for a pipe. The error begins with the
// path, names the mistake and says how to make a key. It has nothing of the file's contents.
func Load(path string) (*Key, error) {
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file: make a key with robotsgate keys new %s", path, path)
	}
	var key *Key
	if err == nil {
		key, err = Parse(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; robotsgate keys new FILE makes a key in another file", path, err)
	}
	return key, nil
}

// read returns the contents of a key file.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fileError(err)
	case !info.Mode().IsRegular(): // opening a pipe waits for a writer
		return nil, errors.New("not a regular file but a folder, a pipe, a socket or a device")
	case info.Size() > maxBytes:
		return nil, errors.New("larger than 64 KiB, which is too much for a key: an Ed25519 key in PEM is needed")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fileError(err)
	}
	return data, nil
}

// fileError returns err without the path, which the caller adds.
func fileError(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return errors.New("no permission to read it: give it to the user that runs robotsgate with chown, and chmod 600 it")
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Exposed reports whether the group or others may read the file at path, and returns its permission
// bits. exposed is false after an error, and on Windows, which has no such bits.
func Exposed(path string) (mode fs.FileMode, exposed bool) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&0o044 != 0
}

// Create makes a new key in a new file at path, which only its owner may read and write, whatever
// the umask is. It does not follow a link. If there is a file or a link at path, the error is
// [fs.ErrExist].
func Create(path string) (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	// The umask may have taken the owner's permissions.
	if err = cmp.Or(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		os.Remove(path)
		return nil, err
	}
	return New(private), nil
}
