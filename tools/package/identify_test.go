package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct {
		described string
		changed   bool
		want      string
	}{
		{"v1.2.3", false, "1.2.3"},
		{"v1.2.3", true, "1.2.3+changed"},
		{"v1.3.0-rc.1", false, "1.3.0-rc.1"},
		{"v1.2.3-5-g0123456", false, "1.2.3+5.g0123456"},
		{"v1.3.0-rc.1-5-g0123456", true, "1.3.0-rc.1+5.g0123456.changed"},
		{"", false, "0.0.0+42.g0123456789ab"},
		{"", true, "0.0.0+42.g0123456789ab.changed"},
	} {
		got := versionOf(c.described, "42", commit, c.changed)
		if got != c.want || !semver.MatchString(got) {
			t.Errorf("%q, changed %v: got %s, want %s", c.described, c.changed, got, c.want)
		}
	}
}

func TestIdentify(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=1700000000 +0000", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	check := func(what, version, wantVersion, wantCommit string) {
		t.Helper()
		r := release{root: root}
		if err := r.identify(version); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if r.version != wantVersion || !strings.HasSuffix(r.commit, wantCommit) || r.time.Unix() != 1700000000 {
			t.Errorf("%s: got version %s, commit %s, time %v", what, r.version, r.commit, r.time)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	r := release{root: root}
	if err := r.identify("1.2.3"); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("without git: %v, which does not say what to do", err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	check("without git", "1.2.3", "1.2.3", "unknown")
	t.Setenv("SOURCE_DATE_EPOCH", "")

	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	git("tag", "v2.0.0")
	check("at a tag", "", "2.0.0", "")
	check("with -version", "v9.9.9", "9.9.9", "")
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	check("with changes", "", "2.0.0+changed", " with changes")

	for _, version := range []string{"1.2", "next", "1.2.3'", "1.2.3 x"} {
		if err := r.identify(version); err == nil {
			t.Errorf("version %q is accepted", version)
		}
	}
}
