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
	"strings"
	"time"
)

// leafLife and skew together stay below the 200 days that browsers accept.
const leafLife = 180 * 24 * time.Hour

func (p *pair) leaf(host string, told func(signed time.Duration)) (*tls.Certificate, error) {
	name, err := leafName(host)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	var signed time.Duration
	cert, err := p.leaves.get(name, begun, func(name string, now time.Time) (*tls.Certificate, error) {
		cert, err := p.sign(name, now)
		signed = time.Since(begun)
		return cert, err
	})
	if err == nil && told != nil {
		told(signed)
	}
	return cert, err
}

// leafName returns the form under which host is kept and signed.
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

// sign makes a leaf for name. Each has a key of its own: that costs a tenth of
// what signing does, and a key that leaks speaks for one host only.
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
		NotBefore:    later(now.Add(-skew), p.cert.NotBefore),
		NotAfter:     earlier(now.Add(leafLife), p.cert.NotAfter),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		// A leaf is no CA, and says so for verifiers that don't imply it.
		BasicConstraintsValid: true,
	}
	if len(name) <= 64 { // the limit of X.520; what counts is the list of names
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
	// The root too, though who trusts it has it: headless browsers that trust a
	// CA by the digest of its key look for it in what the server sends.
	chain := append([][]byte{der}, p.chain...)
	if len(p.chain) == 0 {
		chain = append(chain, p.cert.Raw)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
