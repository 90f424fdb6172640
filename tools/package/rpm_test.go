package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testRPM installs the .rpm in a root of Debian, so without its dependencies, and upgrades and
// removes it.
func testRPM(t *testing.T, root string, old, upgrade map[string][]byte) {
	arch := strings.TrimSpace(output(t, "uname", "-m"))
	dir := t.TempDir()
	oldFile, newFile := filepath.Join(dir, "old.rpm"), filepath.Join(dir, "new.rpm")
	write(t, oldFile, find(t, old, "robotsgate-*."+arch+".rpm"))
	write(t, newFile, find(t, upgrade, "robotsgate-*."+arch+".rpm"))

	files := strings.Fields(output(t, "rpm", "-qpl", oldFile))
	for _, name := range []string{"/usr/bin/robotsgate", unitFile, configFile, "/usr/share/man/man1/robotsgate.1.gz",
		"/usr/share/zsh/site-functions/_robotsgate", "/usr/share/licenses/robotsgate/LICENSE"} {
		if !slices.Contains(files, name) {
			t.Errorf("the .rpm has no %s", name)
		}
	}
	for query, want := range map[string]string{
		"%{VERSION}": "0.1.0", "%{BUILDHOST}": "localhost", "%{LICENSE}": "Apache-2.0", "[%{REQUIRENAME} ]": "ca-certificates /usr/sbin/useradd ",
	} {
		if got := output(t, "rpm", "-qp", "--queryformat", query, oldFile); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}

	rpm := func(args ...string) string {
		t.Helper()
		return output(t, "rpm", append([]string{"--root", root, "--nodeps"}, args...)...)
	}
	rpm("--install", oldFile)
	wantOwned(t, root, dataDir, "drwx------ robotsgate")
	edited := read(t, root, configFile) + "mode: report\n"
	write(t, filepath.Join(root, configFile), []byte(edited))
	write(t, filepath.Join(root, dataDir, "data"), nil)
	rpm("--upgrade", newFile)
	if got := in(t, root, "robotsgate", "version"); !strings.HasPrefix(got, "robotsgate v0.2.0,") {
		t.Errorf("after the upgrade: %s", got)
	}
	if read(t, root, configFile) != edited || !exists(root, dataDir+"/data") {
		t.Error("the configuration or the data did not survive the upgrade")
	}
	rpm("--erase", "robotsgate")
	if exists(root, "/usr/bin/robotsgate") {
		t.Error("the program is still there after the removal")
	}
	if read(t, root, configFile+".rpmsave") != edited || !exists(root, dataDir+"/data") {
		t.Error("the configuration or the data did not survive the removal")
	}
}
