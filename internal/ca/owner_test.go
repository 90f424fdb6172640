//go:build unix

package ca

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// otherUser is a user that no machine has.
const otherUser = 54321

// asRoot skips a test that sets owners.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != root {
		t.Skip("only root can set owners")
	}
}

func chown(t *testing.T, path string, uid int) {
	t.Helper()
	if err := os.Chown(path, uid, uid); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func wantOwner(t *testing.T, want int, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if o, _ := ownerOf(path); o != (owner{want, want}) {
			t.Errorf("%s belongs to %v, want %d", path, o, want)
		}
	}
}

// A gate can read its CA also after root has renewed it.
func TestRootWritesForTheGatesUser(t *testing.T) {
	asRoot(t)
	above := t.TempDir()
	chown(t, above, otherUser)
	dir := filepath.Join(above, "share", "robotsgate")
	key, cert, bundle := filepath.Join(dir, keyName), filepath.Join(dir, certName), filepath.Join(dir, bundleName)
	a := open(t, dir) // the first time
	bundleOf(t, a, dir)
	wantOwner(t, otherUser, filepath.Dir(dir), dir, key, cert, bundle)

	bundleOf(t, renew(t, dir), dir)
	wantOwner(t, otherUser, key, cert, bundle)
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Error("mode of the key:", info.Mode(), err)
	}

	// The owner of the key counts before that of the folder, unless it is root.
	chown(t, dir, root)
	renew(t, dir)
	wantOwner(t, otherUser, key)
	chown(t, dir, otherUser)
	chown(t, key, root)
	renew(t, dir)
	wantOwner(t, otherUser, key)
}

// Only root can set the owner, so for other users Renew fails before it changes
// anything.
func TestKeyOfAnotherUser(t *testing.T) {
	key := filepath.Join(t.TempDir(), keyName)
	if err := renewable(key, otherUser); err != nil {
		t.Error("the first key:", err)
	}
	write(t, key, nil)
	me := os.Geteuid()
	if err := renewable(key, me); err != nil {
		t.Error("one's own:", err)
	}
	if err := renewable(key, otherUser); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("belongs to user %d", me)) {
		t.Error("another's:", err)
	}
	if err := renewable(key, root); err != nil {
		t.Error("root:", err)
	}
}

// A renewal that cannot write the key changes nothing.
func TestFailedRenewal(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	key := filepath.Join(dir, keyName)
	if err := os.Rename(key, key+".there"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(key, "full"), 0o700); err != nil { // cannot be replaced
		t.Fatal(err)
	}
	if _, err := Renew(dir); err == nil || !strings.Contains(err.Error(), keyName) {
		t.Fatal("renewed:", err)
	}
	if err := errors.Join(os.RemoveAll(key), os.Rename(key+".there", key)); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir); !got.Certificate().Equal(a.Certificate()) {
		t.Error("the CA has changed")
	}
}

// Warnings are only for problems that their reader can solve. Kubernetes lets the
// gate's group read a Secret, in a folder in which only kubelet removes files.
func TestWarningsOnOwners(t *testing.T) {
	asRoot(t)
	for _, c := range []struct {
		name      string
		key, dir  os.FileMode
		keyOf     int
		dirOf     int
		wantParts []string
	}{
		{"Kubernetes", 0o440, 0o777 | os.ModeSticky | os.ModeSetgid, otherUser, otherUser, nil},
		{"for all", 0o444, 0o755, otherUser, otherUser, []string{"can be read"}},
		{"ours, for a group", 0o640, 0o755, root, root, []string{"can be read"}},
		{"a folder for all", 0o600, 0o777, root, otherUser, []string{"can be written"}},
		{"a sticky one, ours", 0o600, 0o777 | os.ModeSticky, root, root, []string{"can be written"}},
		{"as we make it", 0o600, 0o700, root, root, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ca")
			a := open(t, dir)
			key := filepath.Join(dir, keyName)
			chown(t, key, c.keyOf)
			chown(t, dir, c.dirOf)
			chmod(t, key, c.key)
			chmod(t, dir, c.dir)
			got := a.Warnings()
			if len(got) != len(c.wantParts) {
				t.Fatalf("got %q, want %q", got, c.wantParts)
			}
			for i, part := range c.wantParts {
				if !strings.Contains(got[i], part) {
					t.Errorf("got %q, want %q", got[i], part)
				}
			}
		})
	}
}
