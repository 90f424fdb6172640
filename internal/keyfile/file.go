package keyfile

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
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
	if info, err := os.Stat(path); err != nil {
		return nil, fileError(err)
	} else if !info.Mode().IsRegular() {
		return nil, notRegular(info)
	}
	// Without O_NONBLOCK, opening a pipe waits for a writer. Another file may have taken the path
	// since the call of Stat.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileError(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, fileError(err)
	} else if !info.Mode().IsRegular() {
		return nil, notRegular(info)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fileError(err)
	}
	if len(data) > maxBytes {
		return nil, errors.New("larger than 64 KiB, which is too much for a key: an Ed25519 key in PEM is needed")
	}
	return data, nil
}

func notRegular(info fs.FileInfo) error {
	kind := "a device"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return fmt.Errorf("not a regular file but %s", kind)
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
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	// The umask may have taken the owner's permissions.
	if err = cmp.Or(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		os.Remove(path)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return New(private), nil
}
