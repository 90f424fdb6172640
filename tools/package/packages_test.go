package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// long skips a test that builds packages, unless ROBOTSGATE_LONG is set.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("ROBOTSGATE_LONG") == "" {
		t.Skip("ROBOTSGATE_LONG is not set")
	}
}

// output runs a command and returns what it prints. An error ends the test.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// copySource copies the files that git tracks, as they are now, and new files to dir. The copy has
// no git history.
func copySource(t *testing.T, dir string) {
	t.Helper()
	names := output(t, "git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	for name := range strings.SplitSeq(strings.Trim(names, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // removed, but not yet in a commit
		} else if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// build builds the source in dir as users do, but without git, and returns the files.
func build(t *testing.T, dir, version string, args ...string) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	args = append([]string{"run", "-C", filepath.Join(dir, "tools/package"), ".", "-o", out, "-version", version}, args...)
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	output(t, "go", args...)
	files := map[string][]byte{}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(out, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestPackages builds everything twice, and tries the packages for this machine in a clean root.
func TestPackages(t *testing.T) {
	long(t)
	waitForRoot := makeRoot(t)
	source, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "another", "path")
	copySource(t, source)
	copySource(t, elsewhere)
	old := build(t, source, "0.1.0")
	t.Run("two builds give the same bytes", func(t *testing.T) {
		t.Setenv("TZ", "Pacific/Auckland")
		defer syscall.Umask(syscall.Umask(0o077))
		wantSame(t, build(t, elsewhere, "0.1.0"), old)
	})
	t.Run("archives", func(t *testing.T) { testArchives(t, old) })
	t.Run("architectures", func(t *testing.T) { testArchitectures(t, old) })
	upgrade := build(t, source, "0.2.0", "-platform", "linux/"+runtime.GOARCH)
	t.Run("image", func(t *testing.T) { testImage(t, old, upgrade) })
	root := waitForRoot()
	t.Run("deb", func(t *testing.T) { testDeb(t, root, old, upgrade) })
	t.Run("rpm", func(t *testing.T) { testRPM(t, root, old, upgrade) })
	t.Run("systemd", func(t *testing.T) { testSystemd(t, root, old, upgrade) })
}

func wantSame(t *testing.T, got, want map[string][]byte) {
	t.Helper()
	if names := slices.Sorted(maps.Keys(want)); !slices.Equal(slices.Sorted(maps.Keys(got)), names) {
		t.Errorf("the second build has other files than %q", names)
	}
	for name, content := range want {
		if !bytes.Equal(got[name], content) {
			t.Errorf("%s differs", name)
		}
	}
}

// testArchives looks for the files of an archive, and compares the checksums.
func testArchives(t *testing.T, built map[string][]byte) {
	dir := t.TempDir()
	for name, content := range built {
		write(t, filepath.Join(dir, name), content)
	}
	sums := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	sums.Dir = dir
	if out, err := sums.CombinedOutput(); err != nil || bytes.Count(out, []byte(": OK\n")) != len(built)-1 {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
	for name, binary := range map[string]string{
		"robotsgate_0.1.0_linux_amd64.tar.gz": "robotsgate", "robotsgate_0.1.0_linux_arm64.tar.gz": "robotsgate",
		"robotsgate_0.1.0_macos_amd64.tar.gz": "robotsgate", "robotsgate_0.1.0_macos_arm64.tar.gz": "robotsgate",
		"robotsgate_0.1.0_windows_amd64.zip": "robotsgate.exe",
	} {
		folder := t.TempDir()
		if strings.HasSuffix(name, ".zip") {
			archive, err := zip.NewReader(bytes.NewReader(built[name]), int64(len(built[name])))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(folder, archive); err != nil {
				t.Fatal(err)
			}
		} else {
			output(t, "tar", "-xzf", filepath.Join(dir, name), "-C", folder)
		}
		folder = filepath.Join(folder, strings.TrimSuffix(strings.TrimSuffix(name, ".zip"), ".tar.gz"))
		for _, file := range []string{"LICENSE", "LICENSES-OF-MODULES.txt", "README.md", "config.yaml", "robotsgate.1", "completion/_robotsgate",
			"docs/deploy.md", "deploy/helm/templates/gate.yaml", "deploy/helm/files/alerts.yaml"} {
			if info, err := os.Stat(filepath.Join(folder, file)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %s: %v", name, file, err)
			}
		}
		if out := output(t, "go", "version", "-m", filepath.Join(folder, binary)); !strings.Contains(out, "CGO_ENABLED=0") || !strings.Contains(out, "-trimpath=true") {
			t.Errorf("%s: the binary is not static: %s", name, out)
		}
		if strings.Contains(name, "linux_"+runtime.GOARCH) {
			if got := output(t, filepath.Join(folder, binary), "version"); !strings.HasPrefix(got, "robotsgate v0.1.0, commit unknown, ") {
				t.Errorf("%s: got version %s", name, got)
			}
		}
	}
}

// testArchitectures compares the name of each package with what dpkg and rpm read in it.
func testArchitectures(t *testing.T, built map[string][]byte) {
	dir := t.TempDir()
	for name, query := range map[string][]string{
		"robotsgate_0.1.0_%s.deb":   {"dpkg-deb", "--showformat=${Architecture}", "--show"},
		"robotsgate-0.1.0-1.%s.rpm": {"rpm", "-qp", "--queryformat=%{ARCH}"},
	} {
		for _, arch := range map[string][]string{"dpkg-deb": {"amd64", "arm64"}, "rpm": {"x86_64", "aarch64"}}[query[0]] {
			file := filepath.Join(dir, fmt.Sprintf(name, arch))
			write(t, file, built[filepath.Base(file)])
			if got := output(t, query[0], append(query[1:], file)...); got != arch {
				t.Errorf("%s is for %q", filepath.Base(file), got)
			}
		}
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
