package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// identify finds version, commit and time. Without git, as in an unpacked archive of the source,
// the caller must name version and time.
func (r *release) identify(version string) error {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	head, err := r.git("log", "-1", "--format=%H %ct")
	if err != nil {
		if version == "" || epoch == "" {
			return fmt.Errorf("%w\nWithout a git history give -version, and the time of the source in SOURCE_DATE_EPOCH", err)
		}
		return r.set(version, "unknown", epoch)
	}
	commit, seconds, _ := strings.Cut(head, " ")
	changes, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if version == "" {
		// It fails if there is no tag.
		described, _ := r.git("describe", "--tags", "--abbrev=12", "--match", "v[0-9]*")
		count, err := r.git("rev-list", "--count", "HEAD")
		if err != nil {
			return err
		}
		version = versionOf(described, count, commit, changes != "")
	}
	if changes != "" {
		commit += " with changes"
	}
	return r.set(version, commit, cmp.Or(epoch, seconds))
}

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

func (r *release) set(version, commit, epoch string) error {
	version = strings.TrimPrefix(version, "v")
	if !semver.MatchString(version) {
		return fmt.Errorf("version %q does not look like 1.2.3 or 1.2.3-rc.1", version)
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH=%s: want seconds since 1970", epoch)
	}
	r.version, r.commit, r.time = version, commit, time.Unix(seconds, 0).UTC()
	return nil
}

// versionOf returns the version of a commit: 1.2.3 for the tag v1.2.3 itself, 1.2.3+5.gabc1234 for
// the fifth commit after it, and without a tag 0.0.0 with the number of all commits. Packages of
// later commits therefore count as newer.
func versionOf(described, count, commit string, changed bool) string {
	version, build := strings.TrimPrefix(described, "v"), ""
	if version == "" {
		version, build = "0.0.0", count+".g"+commit[:min(len(commit), 12)]
	} else if m := regexp.MustCompile(`^(.+)-(\d+)-(g[0-9a-f]+)$`).FindStringSubmatch(version); m != nil {
		version, build = m[1], m[2]+"."+m[3]
	}
	if changed {
		build = strings.TrimPrefix(build+".changed", ".")
	}
	if build != "" {
		version += "+" + build
	}
	return version
}

// git runs git in the source. A repository above the source does not count.
func (r *release) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(r.root))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
