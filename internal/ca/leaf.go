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
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// leafLife and skew together stay below the 200 days that browsers accept.
const leafLife = 180 * 24 * time.Hour

// Leaf returns a certificate for a DNS name or a literal IP address in canonical form, see
// [robotsgate/policy/canonical.Host], signed by a. It comes from a cache unless it is new or near its end.
func (a *Authority) Leaf(name string) (*tls.Certificate, error) {
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

// sign makes a leaf for name. Each leaf has a key of its own: making it is a
// tenth of the cost, and a leaked key is good for one host only.
func (p *pair) sign(name string, now time.Time) (*tls.Certificate, error) {
	if err := p.checkTime(now); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		NotBefore:   slices.MaxFunc([]time.Time{now.Add(-skew), p.cert.NotBefore}, time.Time.Compare),
		NotAfter:    slices.MinFunc([]time.Time{now.Add(leafLife), p.cert.NotAfter}, time.Time.Compare),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
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

// maxLeaves bounds the cache. A leaf takes some 2 KB, and signing again is cheap.
const maxLeaves = 4096

// leaves is a cache of leaves by name. It signs one at a time for each name.
type leaves struct {
	signing singleflight.Group

	mu     sync.Mutex
	byName map[string]*tls.Certificate
}

func (l *leaves) get(name string, now time.Time, sign func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	if cert := l.lookup(name, now); cert != nil {
		return cert, nil
	}
	cert, err, _ := l.signing.Do(name, func() (any, error) {
		// Another call may have signed it since the lookup.
		if cert := l.lookup(name, now); cert != nil {
			return cert, nil
		}
		cert, err := sign()
		if err == nil {
			l.add(name, cert)
		}
		return cert, err
	})
	if err != nil {
		return nil, err
	}
	return cert.(*tls.Certificate), nil
}

// lookup returns the leaf for name if it has more than a tenth of its life left,
// so that it outlives the connection.
func (l *leaves) lookup(name string, now time.Time) *tls.Certificate {
	l.mu.Lock()
	cert := l.byName[name]
	l.mu.Unlock()
	if cert == nil || cert.Leaf.NotAfter.Sub(now) <= cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore)/10 {
		return nil
	}
	return cert
}

// add adds a leaf, in place of a random one if there are too many.
func (l *leaves) add(name string, cert *tls.Certificate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byName) >= maxLeaves {
		for other := range l.byName {
			delete(l.byName, other)
			break
		}
	}
	l.byName[name] = cert
}
