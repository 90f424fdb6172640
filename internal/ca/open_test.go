package ca

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t testing.TB, dir string) *Authority {
	t.Helper()
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestOpenMakesARoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "robotsgate")
	a := open(t, dir)
	c := a.Certificate()
	if !c.IsCA || c.MaxPathLen != 0 || !c.MaxPathLenZero || !selfSigned(c) {
		t.Error("not a self-signed root that signs leaves only")
	}
	if c.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign {
		t.Errorf("key usage: %b", c.KeyUsage)
	}
	if len(c.SubjectKeyId) == 0 || c.SerialNumber.BitLen() < 120 {
		t.Error("no key id or no random serial")
	}
	if !strings.HasPrefix(c.Subject.CommonName, "robotsgate CA ") {
		t.Errorf("subject: %s", c.Subject)
	}
	if years := time.Until(c.NotAfter).Hours() / 24 / 365; years < 4.9 || years > 5.1 {
		t.Errorf("holds for %.1f years", years)
	}
	if a.CertFile() != filepath.Join(dir, "ca.pem") {
		t.Errorf("file: %s", a.CertFile())
	}
	if data, err := os.ReadFile(a.CertFile()); err != nil || !bytes.Equal(data, a.PEM()) {
		t.Errorf("ca.pem isn't PEM(): %v", err)
	}
	if w := a.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %q", w)
	}
	if again := open(t, dir); !again.Certificate().Equal(c) {
		t.Error("the second start made another CA")
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{"": 0o700, "ca.pem": 0o644, "ca-key.pem": 0o600} {
			if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: got %v, want %v (%v)", path, info.Mode().Perm(), want, err)
			}
		}
	}
	onlyFiles(t, dir, "ca-key.pem", "ca.pem")
}

// onlyFiles checks that nothing temporary is left in dir.
func onlyFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("files: got %q, want %q", got, want)
	}
}

func TestOpenAtOnce(t *testing.T) {
	for range 5 {
		dir := filepath.Join(t.TempDir(), "fresh")
		var wg sync.WaitGroup
		start := make(chan struct{})
		got := make([]*Authority, 20)
		for i := range got {
			wg.Go(func() {
				<-start
				a, err := Open(dir)
				if err != nil {
					t.Error(err)
				}
				got[i] = a
			})
		}
		close(start)
		wg.Wait()
		for _, a := range got {
			if a == nil || !a.Certificate().Equal(got[0].Certificate()) {
				t.Fatal("two starts at once made two CAs")
			}
		}
		onlyFiles(t, dir, "ca-key.pem", "ca.pem")
	}
}

func TestOpenAfterAnInterruptedStart(t *testing.T) {
	dir := t.TempDir()
	before := open(t, dir)
	if err := os.Remove(before.CertFile()); err != nil {
		t.Fatal(err)
	}
	after := open(t, dir)
	if !equalKeys(before.Certificate().PublicKey, after.Certificate().PublicKey) {
		t.Error("the existing key is not used")
	}
	if before.Certificate().Equal(after.Certificate()) {
		t.Error("no new certificate")
	}
}

// TestOpenAfterAnInterruptedRenewal: until the key is replaced, the old CA is in use.
func TestOpenAfterAnInterruptedRenewal(t *testing.T) {
	dir := t.TempDir()
	before := open(t, dir)
	key, err := os.ReadFile(filepath.Join(dir, keyName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Renew(dir); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, keyName), key)
	if after := open(t, dir); !after.Certificate().Equal(before.Certificate()) {
		t.Error("not the old CA")
	}
}

func TestOpenRefuses(t *testing.T) {
	other := open(t, t.TempDir())
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		want  string
	}{
		{"key gone", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, keyName)) }, "put it back"},
		{"another CA's certificate", func(t *testing.T, dir string) { write(t, filepath.Join(dir, certName), other.PEM()) }, "is not the key of"},
		{"another CA's certificate, the way out", func(t *testing.T, dir string) { write(t, filepath.Join(dir, certName), other.PEM()) }, "robotsgate ca --renew"},
		{"certificate emptied", func(t *testing.T, dir string) { write(t, filepath.Join(dir, certName), nil) }, "nothing in PEM form"},
		{"key damaged", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, keyName), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
		}, "is damaged"},
		{"folder is a file", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			write(t, dir, nil)
		}, "not a directory"},
		{"key is a link to nowhere", func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, keyName))
			if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, keyName)); err != nil {
				t.Skip(err)
			}
		}, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ca")
			open(t, dir)
			c.spoil(t, dir)
			a, err := Open(dir)
			if err == nil || a != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWarnings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	dir := t.TempDir()
	open(t, dir)
	if err := os.Chmod(filepath.Join(dir, keyName), 0o644); err != nil {
		t.Fatal(err)
	}
	w := strings.Join(open(t, dir).Warnings(), "\n")
	if !strings.Contains(w, "ca-key.pem can be read by other users") {
		t.Errorf("got %q", w)
	}
}

// Processes that open a CA while it is renewed must get a certificate and key that
// belong together.
func TestRenewWhileOthersOpen(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if _, err := Open(dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			if _, err := Renew(dir); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	open(t, dir)
}
