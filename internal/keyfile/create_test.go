package keyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	key, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := Load(path); err != nil || read.ID() != key.ID() {
		t.Errorf("read again: %v, want the key %s", err, key.ID())
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(before), "-----BEGIN PRIVATE KEY-----\n") || len(before) != 119 {
		t.Errorf("the file has %d bytes in another form than that of openssl", len(before))
	}
	if _, err := Create(path); !errors.Is(err, fs.ErrExist) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("got %v, want that the file exists", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed, %v", err)
	}
	if _, err := Create(filepath.Join(path, "key.pem")); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("below a file: got %v", err)
	}
}
