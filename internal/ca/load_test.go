package ca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issue makes a certificate for key, signed by parent; without one, by itself.
func issue(t *testing.T, name string, key crypto.Signer, parent *x509.Certificate, signer crypto.Signer, change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(1000 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	if change != nil {
		change(template)
	}
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func block(kind string, der []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func pkcs8(key crypto.Signer) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return block("PRIVATE KEY", der, err)
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// files writes a certificate and a key file and returns their paths.
func files(t *testing.T, cert, key []byte) (string, string) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "own.pem"), filepath.Join(dir, "own-key.pem")
	write(t, certFile, cert)
	write(t, keyFile, key)
	return certFile, keyFile
}

func TestLoadKinds(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec := ecKey(t)
	sec1, err := x509.MarshalECPrivateKey(ec)
	for _, c := range []struct {
		name string
		key  crypto.Signer
		pem  []byte
	}{
		{"rsa pkcs1", rsaKey, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil)},
		{"rsa pkcs8", rsaKey, pkcs8(rsaKey)},
		{"ecdsa sec1 after its parameters", ec, append(block("EC PARAMETERS", []byte{6, 0}, nil), block("EC PRIVATE KEY", sec1, err)...)},
		{"ecdsa pkcs8", ec, pkcs8(ec)},
		{"ed25519 pkcs8", edKey, pkcs8(edKey)},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := issue(t, "Own CA", c.key, nil, nil, nil)
			// One file may hold both; the key must not get out by PEM.
			both := append(bytes.Clone(c.pem), encodeCertificate(root.Raw)...)
			certFile, _ := files(t, both, nil)
			a, err := Load(certFile, certFile)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.PEM(), encodeCertificate(root.Raw)) {
				t.Errorf("PEM: %s", a.PEM())
			}
			leaf, err := a.Leaf("example.com")
			if err != nil {
				t.Fatal(err)
			}
			if len(leaf.Certificate) != 2 || !bytes.Equal(leaf.Certificate[1], a.Certificate().Raw) {
				t.Errorf("%d certificates, want the leaf and the root", len(leaf.Certificate))
			}
			verify(t, leaf, root, "example.com")
		})
	}
}

func TestLoadChain(t *testing.T) {
	rootKey, key := ecKey(t), ecKey(t)
	root := issue(t, "Root", rootKey, nil, nil, nil)
	inter := issue(t, "Intermediate", key, root, rootKey, nil)
	certFile, keyFile := files(t, append(encodeCertificate(inter.Raw), encodeCertificate(root.Raw)...), pkcs8(key))
	a, err := Load(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.Leaf("example.com")
	if err != nil {
		t.Fatal(err)
	}
	if len(leaf.Certificate) != 2 || !bytes.Equal(leaf.Certificate[1], inter.Raw) {
		t.Errorf("the chain has %d certificates, want the leaf and the intermediate", len(leaf.Certificate))
	}
	verify(t, leaf, root, "example.com")
}

func TestLoadRefuses(t *testing.T) {
	key := ecKey(t)
	cert := func(change func(*x509.Certificate)) []byte {
		return encodeCertificate(issue(t, "Own CA", key, nil, nil, change).Raw)
	}
	good, goodKey := cert(nil), pkcs8(key)
	for _, c := range []struct {
		name      string
		cert, key []byte
		want      string
	}{
		{"no CA", cert(func(c *x509.Certificate) { c.IsCA = false; c.KeyUsage = x509.KeyUsageDigitalSignature }), goodKey, "is not a CA's"},
		{"may not sign", cert(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }), goodKey, "may not sign certificates"},
		{"expired", cert(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), goodKey, "expired on"},
		{"not yet valid", cert(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }), goodKey, "clock"},
		{"another key", good, pkcs8(ecKey(t)), "is not the key of"},
		{"not PEM", []byte("hello"), goodKey, "own.pem: nothing in PEM form"},
		{"key not PEM", good, []byte("hello"), "own-key.pem: nothing in PEM form"},
		{"files swapped", goodKey, good, "own-key.pem: no private key in it but a certificate"},
		{"key file is a certificate", good, good, "own-key.pem: no private key in it but a certificate"},
		{"damaged certificate", block("CERTIFICATE", []byte("x"), nil), goodKey, "certificate 1 is damaged"},
		{"damaged key", good, block("EC PRIVATE KEY", []byte("x"), nil), "private key is damaged"},
		{"passphrase", good, block("ENCRYPTED PRIVATE KEY", []byte("x"), nil), "passphrase"},
		{"unknown form", good, block("OPENSSH PRIVATE KEY", []byte("x"), nil), "is not understood"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(files(t, c.cert, c.key))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.pem"), "x"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that isn't there: %v", err)
	}
}
