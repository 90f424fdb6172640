package ca

import (
	"crypto/tls"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxLeaves bounds the cache. A leaf takes some 2 KB, and signing again is cheap.
const maxLeaves = 4096

// leaves is a cache of leaves by name. It signs one at a time for each name.
type leaves struct {
	end     time.Time // of the CA; no leaf is valid longer
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
// so that it outlives the connection. A leaf that ends with the CA is returned to
// its end, since a new one would end at the same time.
func (l *leaves) lookup(name string, now time.Time) *tls.Certificate {
	l.mu.Lock()
	cert := l.byName[name]
	l.mu.Unlock()
	if cert == nil {
		return nil
	}
	spare := cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore) / 10
	if !cert.Leaf.NotAfter.Before(l.end) {
		spare = 0
	}
	if cert.Leaf.NotAfter.Sub(now) <= spare {
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
