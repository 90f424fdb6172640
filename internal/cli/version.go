package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"robotsgate/internal/console"
)

// Version prints what is running.
type Version struct{}

// Run prints it.
func (Version) Run(s console.Streams) error {
	_, err := fmt.Fprintln(s.Out, versionLine())
	return err
}

func versionLine() string {
	return fmt.Sprintf("robotsgate %s, commit %s, %s %s/%s", version(), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// releaseVersion and releaseCommit are set by the linker when tools/package/release builds. Go itself
// records a version only in a checkout of git.
var releaseVersion, releaseCommit string

// version returns the module's version, which the build has recorded.
func version() string {
	if releaseVersion != "" {
		return releaseVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// commit returns the commit that was built, and whether files differed from it.
func commit() string {
	if releaseCommit != "" {
		return releaseCommit
	}
	settings := map[string]string{"vcs.revision": "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	if settings["vcs.modified"] == "true" {
		return settings["vcs.revision"] + " with changes"
	}
	return settings["vcs.revision"]
}
