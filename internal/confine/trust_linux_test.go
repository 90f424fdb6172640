//go:build linux && (amd64 || arm64)

package confine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// TestJavaStore has Java's keytool read a store, which checks its digest and its certificates.
func TestJavaStore(t *testing.T) {
	gatetest.Long(t)
	gatetest.Needs(t, "keytool")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a CA"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	bundle := "# a comment\n" + strings.Repeat(certificate, 2)
	file := filepath.Join(t.TempDir(), "cacerts")
	if err := os.WriteFile(file, javaStore([]byte(bundle), time.Now()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("keytool", "-list", "-keystore", file, "-storepass", storePassword).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Your keystore contains 2 entries") {
		t.Errorf("keytool: %v\n%s", err, out)
	}
}
