//go:build linux && (amd64 || arm64)

package confine

import (
	"os"
	"path/filepath"
)

// realFiles returns the absolute paths of the regular files that exist, without symbolic links.
func realFiles(files []string) (paths []string) {
	for _, file := range files {
		real, err := filepath.EvalSymlinks(file)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if info, statErr := os.Stat(real); err == nil && statErr == nil && info.Mode().IsRegular() {
			paths = append(paths, real)
		}
	}
	return paths
}
