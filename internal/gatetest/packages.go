package gatetest

import (
	"errors"
	"go/build"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Packages returns the directories with Go files, without the module in tools and testdata.
func Packages(t testing.TB) []string {
	var dirs []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); path != "." && (name == "testdata" || name == "tools" || strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		_, err = build.ImportDir(path, 0)
		if _, none := errors.AsType[*build.NoGoError](err); none {
			return nil
		}
		dirs = append(dirs, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}
