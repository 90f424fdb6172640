package gate

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"

	"robotsgate/internal/ca"
	"robotsgate/proxy"
)

// Upstream returns the transport to origins. It refuses requests to own addresses. Commands
// without a gate pass nil for own and d.
func Upstream(c *Config, roots *x509.CertPool, own []netip.AddrPort, d *proxy.OriginConns) (*proxy.Transport, error) {
	e := c.Egress
	e.Roots, e.Own = roots, func() []netip.AddrPort { return own }
	return proxy.NewTransport(e, d)
}

// Roots returns the roots for origins' certificates.
func Roots(c *Config) (*x509.CertPool, error) {
	pool, err := RootsWith(c.Egress.CAFile)
	if err != nil {
		return nil, fmt.Errorf("egress.ca_file: %w", err)
	}
	return pool, nil
}

// RootsWith returns the system's roots and the certificates in file. It does not use package
// x509 to find the system's roots: that follows SSL_CERT_FILE, which in a shell that uses
// a gate names a bundle with the gate's CA, and the gate must not trust its own CA for
// origins. If the system keeps its roots elsewhere than in files, nil stands for them.
func RootsWith(file string) (*x509.CertPool, error) {
	system, _, err := ca.SystemRoots()
	if err != nil && file == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(system)
	if err != nil {
		if pool, err = x509.SystemCertPool(); err != nil {
			pool = x509.NewCertPool()
		}
	}
	if file == "" {
		return pool, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", file)
	}
	return pool, nil
}
