package ca

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// verify checks leaf as a client does that trusts only root.
func verify(t *testing.T, leaf *tls.Certificate, root *x509.Certificate, host string) {
	t.Helper()
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(root)
	for _, der := range leaf.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		between.AddCert(c)
	}
	if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: host}); err != nil {
		t.Errorf("%s: %v", host, err)
	}
}

func TestLeaf(t *testing.T) {
	a := open(t, t.TempDir())
	long := strings.Repeat("a.", 60) + "example"
	serials := map[string]bool{}
	for _, c := range []struct{ host, verify, name string }{
		{"example.com", "example.com", "example.com"},
		{"my_host.example", "my_host.example", "my_host.example"},
		{"localhost", "localhost", "localhost"},
		{"192.0.2.1", "192.0.2.1", "192.0.2.1"},
		{"2001:db8::1", "2001:db8::1", "2001:db8::1"},
		{"::1", "::1", "::1"},
		{long, long, ""},
	} {
		leaf, err := a.Leaf(c.host)
		if err != nil {
			t.Errorf("%s: %v", c.host, err)
			continue
		}
		verify(t, leaf, a.Certificate(), c.verify)
		x := leaf.Leaf
		if x.Subject.CommonName != c.name {
			t.Errorf("%s: common name %q", c.host, x.Subject.CommonName)
		}
		if len(x.DNSNames)+len(x.IPAddresses) != 1 || (net.ParseIP(c.verify) != nil) != (len(x.IPAddresses) == 1) {
			t.Errorf("%s: names %q, addresses %v", c.host, x.DNSNames, x.IPAddresses)
		}
		if x.IsCA || len(x.ExtKeyUsage) != 1 || x.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth {
			t.Errorf("%s: usable for more than a server", c.host)
		}
		if life := x.NotAfter.Sub(x.NotBefore); life >= 200*24*time.Hour {
			t.Errorf("%s: holds for %v", c.host, life)
		}
		if time.Since(x.NotBefore) < 23*time.Hour {
			t.Errorf("%s: a client whose clock is a day behind refuses it", c.host)
		}
		if serials[x.SerialNumber.String()] || x.SerialNumber.Sign() <= 0 {
			t.Errorf("%s: serial %v", c.host, x.SerialNumber)
		}
		serials[x.SerialNumber.String()] = true
	}
}

func TestLeafIsSignedOnce(t *testing.T) {
	a := open(t, t.TempDir())
	got := make([]*tls.Certificate, 50)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = a.Leaf("example.com"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, leaf := range got {
		if leaf != got[0] {
			t.Fatal("signed more than once")
		}
	}
	other, err := a.Leaf("example.org")
	if err != nil {
		t.Fatal(err)
	}
	if equalKeys(other.Leaf.PublicKey, got[0].Leaf.PublicKey) {
		t.Error("two hosts share a key")
	}
}

func TestLeafIsRenewed(t *testing.T) {
	dir := t.TempDir()
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		a := open(t, dir)
		first, err := a.Leaf("example.com")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * day) // fake clock
		if same, _ := a.Leaf("example.com"); same != first {
			t.Error("renewed after 150 days of 180")
		}
		time.Sleep(20 * day) // fake clock
		second, err := a.Leaf("example.com")
		if err != nil || second == first {
			t.Fatalf("not renewed after 170 days of 180 (%v)", err)
		}
		if len(a.current.Load().leaves.byName) != 1 {
			t.Error("the old one is kept")
		}

		// No leaf outlives the CA.
		time.Sleep(time.Until(a.Certificate().NotAfter) - time.Hour) // fake clock
		last, err := a.Leaf("example.com")
		if err != nil {
			t.Fatal(err)
		}
		if !last.Leaf.NotAfter.Equal(a.Certificate().NotAfter) {
			t.Errorf("ends at %v, the CA at %v", last.Leaf.NotAfter, a.Certificate().NotAfter)
		}
		time.Sleep(2 * time.Hour) // fake clock
		if _, err := a.Leaf("example.com"); err == nil {
			t.Error("a leaf from an expired CA")
		}
	})
}
