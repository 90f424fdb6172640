package ca

import (
	"container/list"
	"crypto/tls"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxLeaves bounds the cache. A leaf takes some 2 KB, and signing again is cheap.
const maxLeaves = 4096

// leaves is a cache of the leaves that were used last. It signs one at a time for
// each name.
type leaves struct {
	max     int
	end     time.Time // of the CA; no leaf is valid longer
	signing singleflight.Group

	mu     sync.Mutex // guards recent and byName
	recent *list.List // of *leaf, the most recently used in front
	byName map[string]*list.Element
}

type leaf struct {
	name string
	cert *tls.Certificate
}

func (l *leaves) init(n int, end time.Time) {
	l.max, l.end, l.recent, l.byName = n, end, list.New(), map[string]*list.Element{}
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
	defer l.mu.Unlock()
	e, ok := l.byName[name]
	if !ok {
		return nil
	}
	l.recent.MoveToFront(e)
	cert := e.Value.(*leaf).cert
	spare := cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore) / 10
	if !cert.Leaf.NotAfter.Before(l.end) {
		spare = 0
	}
	if cert.Leaf.NotAfter.Sub(now) <= spare {
		return nil
	}
	return cert
}

func (l *leaves) add(name string, cert *tls.Certificate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.byName[name]; ok {
		e.Value.(*leaf).cert = cert
		return
	}
	l.byName[name] = l.recent.PushFront(&leaf{name, cert})
	if l.recent.Len() > l.max {
		oldest := l.recent.Remove(l.recent.Back()).(*leaf)
		delete(l.byName, oldest.name)
	}
}
