package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// DataDir returns the folder for the CA and the snapshots: data_dir, or
// robotsgate/ in the user's data directory. Callers create it.
func DataDir(c *Config) (string, error) {
	if c.DataDir != "" {
		return c.DataDir, nil
	}
	base, err := userDataDir(runtime.GOOS, os.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "robotsgate"), nil
}

// userDataDir returns the user's data directory by the convention of each system. Package
// os has such functions for caches and configurations only.
func userDataDir(goos string, getenv func(string) string) (string, error) {
	dir, variable := filepath.Join(getenv("HOME"), ".local", "share"), "$HOME"
	switch goos {
	case "windows":
		dir, variable = getenv("LocalAppData"), "%LocalAppData%"
	case "darwin", "ios":
		dir = filepath.Join(getenv("HOME"), "Library", "Application Support")
	default:
		// The XDG specification says to ignore a relative one.
		if xdg := getenv("XDG_DATA_HOME"); filepath.IsAbs(xdg) {
			dir = xdg
		}
	}
	if dir == "" || goos != "windows" && !filepath.IsAbs(dir) {
		return "", fmt.Errorf("no folder for data: %s is not set; set it, or data_dir in the configuration", variable)
	}
	return dir, nil
}
