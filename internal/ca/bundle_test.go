package ca

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func count(data []byte) int { return bytes.Count(data, []byte("BEGIN CERTIFICATE")) }

func TestSystemRoots(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	key := ecKey(t)
	one := encodeCertificate(issue(t, "One", key, nil, nil, nil).Raw)
	two := encodeCertificate(issue(t, "Two", key, nil, nil, nil).Raw)
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("one"), one)
	write(t, path("two"), bytes.Join([][]byte{[]byte("# comment\n"), one, two, pkcs8(key)}, nil))
	write(t, path("ours"), a.Bundle(one))
	write(t, path("empty"), []byte("nothing\n"))

	for _, c := range []struct {
		name, first string
		files       []string
		count       int
		from        string
	}{
		{"the first file that is there", "", []string{path("none"), path("empty"), path("one"), path("two")}, 1, path("one")},
		{"SSL_CERT_FILE goes first", path("two"), []string{path("one")}, 2, path("two")},
		{"but not if it is our bundle", path("ours"), []string{path("one")}, 1, path("one")},
		{"nor if it is our CA", a.CertFile(), []string{path("one")}, 1, path("one")},
		{"nor if it isn't there", path("none"), []string{path("one")}, 1, path("one")},
	} {
		data, from, err := systemRoots(c.first, c.files)
		if err != nil || count(data) != c.count || from != c.from {
			t.Errorf("%s: got %d from %s (%v), want %d from %s", c.name, count(data), from, err, c.count, c.from)
		}
		if bytes.Contains(data, []byte("PRIVATE")) {
			t.Errorf("%s: a private key got into the roots", c.name)
		}
	}
	if _, _, err := systemRoots("", []string{path("none")}); !errors.Is(err, ErrNoRoots) {
		t.Errorf("nothing there: %v", err)
	}
}

func TestWriteClientFiles(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	roots := filepath.Join(dir, "roots.pem")
	write(t, roots, encodeCertificate(issue(t, "One", ecKey(t), nil, nil, nil).Raw))
	t.Setenv("SSL_CERT_FILE", roots)

	files, err := a.WriteClientFiles(filepath.Join(dir, "new"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(files.Bundle)
	if err != nil || count(data) != 2 || !bytes.Contains(data, a.PEM()) {
		t.Fatalf("%d certificates (%v)", count(data), err)
	}
	onlyFiles(t, filepath.Dir(files.Bundle), "bundle.pem", "wgetrc")

	// Unchanged content is not written again: clients may watch the file.
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(files.Bundle, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WriteClientFiles(filepath.Dir(files.Bundle)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(files.Bundle); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("written again (%v)", err)
	}

	// In a shell with the gate's variables the bundle must not include itself.
	t.Setenv("SSL_CERT_FILE", files.Bundle)
	if _, err := a.WriteClientFiles(filepath.Dir(files.Bundle)); err != nil && !errors.Is(err, ErrNoRoots) {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(files.Bundle); err != nil || bytes.Count(data, a.PEM()) != 1 {
		t.Errorf("the CA is in it %d times (%v)", bytes.Count(data, a.PEM()), err)
	}
}
