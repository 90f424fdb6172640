package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"
	"time"
)

func BenchmarkLeafNew(b *testing.B) {
	a, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.sign("www.example.com", time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLeafCached(b *testing.B) {
	a, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Leaf("www.example.com"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLeafKey is the share of BenchmarkLeafNew that a shared key would
// save.
func BenchmarkLeafKey(b *testing.B) {
	for b.Loop() {
		if _, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			b.Fatal(err)
		}
	}
}
