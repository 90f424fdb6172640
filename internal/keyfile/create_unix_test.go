//go:build unix

package keyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestCreateUmask: the mode is 0600 whatever the umask is.
func TestCreateUmask(t *testing.T) {
	dir := t.TempDir()
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for _, mask := range []int{0, 0o077, 0o177, 0o777} {
		path := filepath.Join(dir, fmt.Sprintf("%o.pem", mask))
		syscall.Umask(mask)
		_, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("umask %o: got %v, %v, want mode 0600", mask, info.Mode(), err)
		}
	}
}

// TestCreateFollowsNoLink: a link is not followed, whether its target exists or not.
func TestCreateFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target, dangling := filepath.Join(dir, "target"), filepath.Join(dir, "nothing")
	write(t, target, []byte("text"))
	for i, to := range []string{target, dangling} {
		link := filepath.Join(dir, string(rune('a'+i)))
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(link); !errors.Is(err, fs.ErrExist) {
			t.Errorf("link to %s: got %v, want that the file exists", to, err)
		}
	}
	if text, err := os.ReadFile(target); string(text) != "text" || err != nil {
		t.Errorf("the target of the link has %q, %v", text, err)
	}
	if _, err := os.Lstat(dangling); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target of the dangling link: %v", err)
	}
}
