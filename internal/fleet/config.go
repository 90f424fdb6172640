package fleet

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"time"

	"robotsgate/internal/field"
)

// Config says with which store this gate shares what it knows with other gates.
type Config struct {
	Address Address       `yaml:"address" restart:"yes" doc:"a Valkey or Redis, such as redis://valkey.lan:6379" secret:"true"` // "": no fleet
	KeyFile string        `yaml:"key_file" restart:"yes" doc:"a file, such as fleet.key" path:"yes"`                            // see [Config.ReadKey]
	Prefix  string        `yaml:"prefix" restart:"yes" doc:"the beginning of all keys, such as robotsgate"`
	Timeout time.Duration `yaml:"timeout" positive:"yes"`                                     // of one call
	CAFile  string        `yaml:"ca_file" doc:"a PEM file, such as valkey-ca.pem" path:"yes"` // see [Config.ReadRoots]
}

// Default returns a configuration without a fleet.
func Default() Config { return Config{Prefix: "robotsgate", Timeout: 100 * time.Millisecond} }

// On reports whether the gate belongs to a fleet.
func (c Config) On() bool { return c.Address != "" }

// maxTimeout bounds Timeout: a request waits for the store so long once.
const maxTimeout = 5 * time.Second

var validPrefix = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,64}\z`)

// Check reports mistakes, those of the files too.
func (c Config) Check(m *field.Mistakes) {
	if c.On() {
		_, err := parseAddress(c.Address)
		m.Refuse("address", err)
	}
	m.Require(c.KeyFile == "" || c.On() || m.Bad("address"), "key_file", "needs fleet.address: without one there is no fleet")
	m.Require(!c.On() || c.KeyFile != "" || m.Bad("key_file"), "address", "needs fleet.key_file, a file of at least %d random bytes that is the same for all gates%s", MinKey, makeKey("fleet.key"))
	m.Require(validPrefix.MatchString(c.Prefix), "prefix", "expected 1 to 64 letters, digits, and . _ -, such as robotsgate, got %.80q", c.Prefix)
	m.Require(c.Timeout <= maxTimeout, "timeout", "%s is too long for a request to wait: at most %s", field.Duration(c.Timeout), field.Duration(maxTimeout))
	m.Require(c.CAFile == "" || c.Address.TLS() || m.Bad("address"), "ca_file", "needs a rediss:// address: redis:// is without TLS")
	if c.KeyFile != "" {
		_, err := c.ReadKey()
		m.Refuse("key_file", err)
	}
	_, err := c.ReadRoots()
	m.Refuse("ca_file", err)
}

// makeKey completes a message with how to make a key.
func makeKey(file string) string {
	return fmt.Sprintf(": make one with (umask 077; head -c %d /dev/urandom > %s)", MinKey, file)
}

// ReadKey reads the secret key in KeyFile.
func (c Config) ReadKey() ([]byte, error) {
	path := c.KeyFile
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New(path + ": no such file" + makeKey(path))
	}
	key, err := field.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(key) < MinKey {
		return nil, fmt.Errorf("%s: %d bytes are too few for a key, %d are needed%s", path, len(key), MinKey, makeKey(path))
	}
	// The group may read it: services and containers receive secrets in this way.
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o027 != 0 {
		return nil, fmt.Errorf("%s: other users may read or change it (mode %04o): chmod 600 %s", path, mode, path)
	}
	return key, nil
}

// ReadRoots reads the roots for the store's certificate in CAFile; nil stands for the system's.
func (c Config) ReadRoots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	pem, err := field.ReadFile(c.CAFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it: a PEM file with -----BEGIN CERTIFICATE----- is needed", c.CAFile)
	}
	return pool, nil
}
