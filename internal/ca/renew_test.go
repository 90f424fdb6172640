package ca

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// trusts reports whether a client with this bundle accepts a gate's certificate.
func trusts(t *testing.T, bundle []byte, gate *Authority) bool {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	leaf, err := gate.Leaf("shop.example")
	if err != nil {
		t.Fatal(err)
	}
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "shop.example"})
	return err == nil
}

func renew(t *testing.T, dir string) *Authority {
	t.Helper()
	a, err := Renew(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Clients get a renewed CA before the gate uses it. A bundle from before the
// renewal works until the gate signs with the new CA. One from after it works with
// both CAs, until the old one expires.
func TestBothAreTrustedAfterARenewal(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		gate := open(t, dir)
		before := gate.Bundle(nil)
		time.Sleep(rootLife*365*24*time.Hour - 20*24*time.Hour) // fake clock
		renewed := renew(t, dir)
		after := renewed.Bundle(nil)
		if !trusts(t, before, gate) || !trusts(t, after, gate) || !trusts(t, after, renewed) {
			t.Error("the renewal alone makes a client reject a gate")
		}
		if trusts(t, before, renewed) {
			t.Error("a bundle from before the renewal trusts the new CA")
		}
		for name, file := range map[string]string{"certificate": renewed.CertFile(), "bundle": bundleOf(t, renewed, dir)} {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !trusts(t, data, gate) || !trusts(t, data, renewed) {
				t.Errorf("the %s on disk does not hold both", name)
			}
		}
		if n := len(renewed.Former()); n != 1 {
			t.Errorf("%d former CAs, want 1", n)
		}

		time.Sleep(30 * 24 * time.Hour) // fake clock: the old one has expired
		if got := open(t, dir); len(got.Former()) != 0 || count(got.PEM()) != 1 || count(got.Bundle(nil)) != 1 {
			t.Error("an expired CA is still in the bundle")
		}
		if again := renew(t, dir); count(again.PEM()) != 2 {
			t.Errorf("%d certificates after the next renewal, want its own and the one before", count(again.PEM()))
		}
	})
}

func bundleOf(t *testing.T, a *Authority, dir string) string {
	t.Helper()
	files, err := a.WriteClientFiles(dir)
	if files.Bundle == "" {
		t.Fatal(err)
	}
	return files.Bundle
}

// A running gate signs with the old CA until Reload.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	gate := open(t, dir)
	if changed, err := gate.Reload(); changed || err != nil {
		t.Errorf("nothing has changed: got %v, %v", changed, err)
	}
	old := gate.Certificate()
	leaf, err := gate.Leaf("shop.example")
	if err != nil {
		t.Fatal(err)
	}
	renewed := renew(t, dir)
	if again, _ := gate.Leaf("shop.example"); again != leaf {
		t.Error("the renewal alone changes what the gate signs")
	}
	if got := gate.PEM(); !trusts(t, got, gate) || !trusts(t, got, renewed) || !bytes.Equal(got, renewed.PEM()) {
		t.Error("PEM does not have the new CA")
	}
	if w := strings.Join(gate.Warnings(), "\n"); !strings.Contains(w, "holds a new CA, and this gate signs with the old one") {
		t.Errorf("warnings: %q", w)
	}
	if changed, err := gate.Reload(); !changed || err != nil {
		t.Errorf("after a renewal: got %v, %v", changed, err)
	}
	if !gate.Certificate().Equal(renewed.Certificate()) || trusts(t, encodeCertificate(old.Raw), gate) || !trusts(t, renewed.PEM(), gate) {
		t.Error("the gate does not sign with the new CA")
	}
	if w := gate.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %q", w)
	}

	write(t, gate.CertFile(), open(t, t.TempDir()).PEM())
	if changed, err := gate.Reload(); changed || err == nil {
		t.Errorf("files that do not fit: got %v, %v", changed, err)
	}
	if !trusts(t, renewed.PEM(), gate) || !trusts(t, gate.PEM(), gate) {
		t.Error("a bad reload has changed the CA")
	}
}

// After a renewal that was interrupted between its two files the gate does not start. Another
// renewal keeps the old CA's certificate.
func TestRenewalCutShort(t *testing.T) {
	dir := t.TempDir()
	gate := open(t, dir)
	_, key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, keyName), key)
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "robotsgate ca --renew") {
		t.Errorf("got %v", err)
	}
	if got := renew(t, dir); !trusts(t, got.PEM(), gate) || !trusts(t, got.PEM(), got) {
		t.Error("after the next Renew only one of the two is trusted")
	}
	onlyFiles(t, dir, "ca-key.pem", "ca.pem")
}

// The first of several renewals makes the folder too.
func TestRenewalsAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fresh")
	gate := renew(t, dir)
	var last *Authority
	for range 10 {
		last = renew(t, dir)
	}
	if n := count(last.PEM()); n != 1+maxFormer {
		t.Errorf("%d certificates after 10 renewals, want %d", n, 1+maxFormer)
	}
	if trusts(t, last.PEM(), gate) {
		t.Error("the first CA is still trusted after nine others")
	}
	onlyFiles(t, dir, "ca-key.pem", "ca.pem")
}

// A renewal drops certificates that are not CAs of a gate.
func TestRenewalDropsForeignCertificates(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	key := ecKey(t)
	foreign := issue(t, "Some other CA", key, nil, nil, nil)
	write(t, filepath.Join(dir, certName), encodeCertificate(foreign.Raw))
	if got := renew(t, dir); count(got.PEM()) != 1 {
		t.Errorf("got %d certificates, want the new one alone", count(got.PEM()))
	}
}

func TestWarningsBeforeTheEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := open(t, dir)
		end := a.Certificate().NotAfter
		for _, c := range []struct {
			left time.Duration
			want string // in the only warning; empty: there is none
		}{
			{31 * 24 * time.Hour, ""},
			{30*24*time.Hour - time.Minute, "the CA expires on 2005-01-01: run robotsgate ca --renew"},
			{time.Minute, "the CA expires on"},
			{-time.Minute, "the CA expired on 2005-01-01: make a new one with robotsgate ca --renew"},
		} {
			time.Sleep(time.Until(end) - c.left) // fake clock
			w := a.Warnings()
			if c.want == "" && len(w) > 0 || c.want != "" && (len(w) != 1 || !strings.Contains(w[0], c.want)) {
				t.Errorf("%v before the end: got %q, want %q", c.left, w, c.want)
			}
		}
	})
}
