package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// leafLife and skew together stay below the 200 days that browsers accept.
const leafLife = 180 * 24 * time.Hour

// Leaf returns a certificate for host, a DNS name or a literal IP address,
// signed by a. It comes from a cache unless it is new or near its end.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	name, err := leafName(host)
	if err != nil {
		return nil, err
	}
	p, now := a.current.Load(), time.Now()
	var signing time.Duration
	cert, err := p.leaves.get(name, now, func() (*tls.Certificate, error) {
		cert, err := p.sign(name, now)
		signing = time.Since(now)
		return cert, err
	})
	if err == nil && a.OnLeaf != nil {
		a.OnLeaf(signing)
	}
	return cert, err
}

// leafName returns the form of host that the cache and the certificate use.
func leafName(host string) (string, error) {
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return addr.Unmap().WithZone("").String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "" || len(name) > 253 {
		return "", fmt.Errorf("no certificate for a name of %d bytes", len(name))
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", fmt.Errorf("no certificate for %q, which is no host name", host)
		}
	}
	return name, nil
}

// sign makes a leaf for name. Each leaf has a key of its own: making it is a
// tenth of the cost, and a leaked key is good for one host only.
func (p *pair) sign(name string, now time.Time) (*tls.Certificate, error) {
	if err := p.checkTime(now, "make or get a new one and restart"); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(),
		NotBefore:    slices.MaxFunc([]time.Time{now.Add(-skew), p.cert.NotBefore}, time.Time.Compare),
		NotAfter:     slices.MinFunc([]time.Time{now.Add(leafLife), p.cert.NotAfter}, time.Time.Compare),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		// Some verifiers require a leaf to say that it is not a CA.
		BasicConstraintsValid: true,
	}
	if len(name) <= 64 { // the limit of X.520; clients read the list of names
		template.Subject = pkix.Name{CommonName: name}
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, key.Public(), p.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %s: %w", name, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %s: %w", name, err)
	}
	// Clients that trust the root have it, but headless browsers that trust a CA
	// by the digest of its key look for it in the chain that the server sends.
	chain := append([][]byte{der}, p.chain...)
	if len(p.chain) == 0 {
		chain = append(chain, p.cert.Raw)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}
