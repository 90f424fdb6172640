package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// checkFiles reads the files that the configuration names, so that a gate reports their
// mistakes at start. Package ca checks that a CA's key belongs to its certificate.
func (c *Config) checkFiles() {
	s, h := &c.source, c.HTTPS
	h.Check(s.In("https"))
	for key, file := range map[string]string{"https.ca_cert": h.CACert, "https.ca_key": h.CAKey, "egress.ca_file": c.Egress.CAFile, "fleet.ca_file": c.Fleet.CAFile} {
		if file == "" {
			continue
		}
		data, err := readNamed(file)
		if strings.HasPrefix(key, "https.") && errors.Is(err, errNoFile) {
			err = fmt.Errorf("%w; without ca_cert and ca_key the gate makes a CA of its own in data_dir", err)
		}
		if err == nil && strings.HasSuffix(key, ".ca_file") && !x509.NewCertPool().AppendCertsFromPEM(data) {
			err = errors.New("no certificate in it: a PEM file with -----BEGIN CERTIFICATE----- is needed")
		}
		s.Require(err == nil, key, "%s: %v", file, err)
	}
	if file := c.Fleet.KeyFile; file != "" {
		_, err := ReadKey(file)
		advice := ""
		if _, ok := errors.AsType[NoKeyError](err); ok {
			advice = makeKey(file)
		}
		s.Require(err == nil, "fleet.key_file", "%v%s", err, advice)
	}
}

// makeKey completes a message with how to make a key.
func makeKey(file string) string {
	return fmt.Sprintf(": make one with (umask 077; head -c %d /dev/urandom > %s)", leastKey, file)
}

// leastKey is the least length of a secret key, in bytes.
const leastKey = 32

// A NoKeyError means that a file does not exist, or is too short for a key. The caller
// adds what to do: make a key for a new log, or name the key of an existing one.
type NoKeyError string

func (e NoKeyError) Error() string { return string(e) }

// ReadKey returns the contents of a file as a secret key. Its error may be a [NoKeyError].
func ReadKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, NoKeyError(path + ": no such file")
	}
	key, err := readNamed(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(key) < leastKey {
		return nil, NoKeyError(fmt.Sprintf("%s: %d bytes are too few for a key, %d are needed", path, len(key), leastKey))
	}
	// The group may read it: services and containers receive secrets in this way.
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o027 != 0 {
		return nil, fmt.Errorf("%s: other users may read or change it (mode %04o): chmod 600 %s", path, mode, path)
	}
	return key, nil
}

// DataDir returns the folder for the CA and the snapshots: data_dir, or
// robotsgate/ in the user's data directory.
func DataDir(c *Config) (string, error) {
	dir := c.DataDir
	if dir == "" {
		base, err := userDataDir(runtime.GOOS, os.Getenv)
		if err != nil {
			return "", err
		}
		dir = filepath.Join(base, "robotsgate")
	}
	info, err := os.Stat(dir) // callers create it
	if err == nil && !info.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		return "", fmt.Errorf("data_dir: %s is a file or below one: name a folder", dir)
	}
	return dir, nil
}

// userDataDir returns the user's data directory by the convention of each system. Package
// os has such functions for caches and configurations only.
func userDataDir(goos string, getenv func(string) string) (string, error) {
	dir, variable := filepath.Join(getenv("HOME"), ".local", "share"), "$HOME"
	switch goos {
	case "windows":
		dir, variable = getenv("LocalAppData"), "%LocalAppData%"
	case "darwin", "ios":
		dir = filepath.Join(getenv("HOME"), "Library", "Application Support")
	default:
		// The XDG specification says to ignore a relative one.
		if xdg := getenv("XDG_DATA_HOME"); filepath.IsAbs(xdg) {
			dir = xdg
		}
	}
	if dir == "" || goos != "windows" && !filepath.IsAbs(dir) {
		return "", fmt.Errorf("no folder for data: %s is not set; set it, or data_dir in the configuration", variable)
	}
	return dir, nil
}
