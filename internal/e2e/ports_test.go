package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// An origin is an address that a server listens on.
type origin struct {
	address string
	tls     bool
}

// writeCertificate writes a self-signed certificate for loopback and its key.
func writeCertificate(t *testing.T, certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.ParseIP(loopback), net.ParseIP("127.0.0.1")},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// loopback is an address that no other test uses, so that no other test can take a port before
// the server listens on it.
const loopback = "127.0.0.13"

// ports are free ports, reserved by listeners until the servers start.
type ports struct {
	listeners map[string]net.Listener
	tls       map[string]bool
}

func newPorts() *ports { return &ports{map[string]net.Listener{}, map[string]bool{}} }

// get returns the address of the origin of this name.
func (p *ports) get(name string) (string, error) {
	l := p.listeners[name]
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", loopback+":0"); err != nil {
			if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				return "", err
			}
		}
		p.listeners[name] = l
	}
	return l.Addr().String(), nil
}

// getTLS is get for an origin with TLS.
func (p *ports) getTLS(name string) (string, error) {
	p.tls[name] = true
	return p.get(name)
}

// release closes the listeners and returns the origins by name.
func (p *ports) release() map[string]origin {
	origins := map[string]origin{}
	for name, l := range p.listeners {
		origins[name] = origin{l.Addr().String(), p.tls[name]}
		l.Close()
	}
	return origins
}
