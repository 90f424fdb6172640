package fleet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestReadKey: a key that other users may read or change is refused.
func TestReadKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes")
	}
	path := filepath.Join(t.TempDir(), "audit.key")
	want := bytes.Repeat([]byte{0, '\n'}, 16)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o640: true, 0o644: false, 0o660: false, 0o601: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		key, err := (Config{KeyFile: path}).ReadKey()
		if ok != (err == nil && bytes.Equal(key, want)) || !ok && !strings.Contains(err.Error(), fmt.Sprintf("(mode %04o): chmod 600 ", mode)) {
			t.Errorf("mode %o: %v, %v", mode, key, err)
		}
	}
}
