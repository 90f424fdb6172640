package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version prints what is running.
type Version struct{}

// Help is shown by --help.
func (Version) Help() string { return "Example:\n  robotsgate version" }

// Run prints it.
func (Version) Run(s Streams) error {
	_, err := fmt.Fprintln(s.Out, versionLine())
	return err
}

func versionLine() string {
	return fmt.Sprintf("robotsgate %s, commit %s, %s %s/%s", version(), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version returns the module's version, which the build has recorded.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, dirty := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " with changes"
		}
	}
	return revision + dirty
}
