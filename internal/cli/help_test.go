package cli

import (
	"io/fs"
	"strings"
	"testing"
)

// TestHelpTexts: every command's help has an example, and says what its exit statuses mean.
func TestHelpTexts(t *testing.T) {
	err := fs.WalkDir(texts, "help", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := texts.ReadFile(path)
		for _, part := range []string{"Exit status", "\nExample:\n"} {
			if !strings.Contains("\n"+string(text), part) {
				t.Errorf("%s lacks %q", path, part)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
