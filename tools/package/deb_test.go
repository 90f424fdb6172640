package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// makeRoot starts to make a root directory with Debian's essential packages and the dependencies
// of ours. The function that it returns waits for the end and returns the directory.
func makeRoot(t *testing.T) func() string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a clean root needs chroot: run this as root")
	}
	root := filepath.Join(t.TempDir(), "root")
	var out strings.Builder
	cmd := exec.CommandContext(t.Context(), "mmdebstrap", "--quiet", "--variant=essential", "--include=ca-certificates,passwd",
		"--dpkgopt=force-unsafe-io", "bookworm", root, "http://deb.debian.org/debian")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("mmdebstrap made no clean root: %v\n%s", err, out.String())
		}
		return root
	}
}

// in runs a command in root, and returns what it prints. An error ends the test.
func in(t *testing.T, root string, args ...string) string {
	t.Helper()
	return output(t, "chroot", append([]string{root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, args...)...)
}

// find returns the file of a build with a name that matches pattern.
func find(t *testing.T, built map[string][]byte, pattern string) []byte {
	t.Helper()
	for name, content := range built {
		if ok, err := filepath.Match(pattern, name); err != nil {
			t.Fatal(err)
		} else if ok {
			return content
		}
	}
	t.Fatalf("no file %s was built", pattern)
	return nil
}

// wantOwned compares mode and owner of a file in root.
func wantOwned(t *testing.T, root, name, want string) {
	t.Helper()
	if got := strings.TrimSpace(in(t, root, "stat", "-c", "%A %U", name)); got != want {
		t.Errorf("%s: got %s, want %s", name, got, want)
	}
}

func exists(root, name string) bool {
	_, err := os.Lstat(filepath.Join(root, name))
	return err == nil
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

const (
	unitFile   = "/usr/lib/systemd/system/robotsgate.service"
	configFile = "/etc/robotsgate/config.yaml"
	dataDir    = "/var/lib/robotsgate"
	auditLog   = "/var/log/robotsgate/audit.jsonl"
)

func testDeb(t *testing.T, root string, old, upgrade map[string][]byte) {
	name := "robotsgate_*_" + runtime.GOARCH + ".deb"
	write(t, filepath.Join(root, "old.deb"), find(t, old, name))
	write(t, filepath.Join(root, "new.deb"), find(t, upgrade, name))
	origin := newOrigin(t)

	in(t, root, "dpkg", "--install", "/old.deb")
	wantOwned(t, root, dataDir, "drwx------ robotsgate")
	wantOwned(t, root, filepath.Dir(auditLog), "drwx------ robotsgate")
	in(t, root, "robotsgate", "validate", configFile)
	in(t, root, "bash", "-c", ". /usr/share/bash-completion/completions/robotsgate && complete -p robotsgate")
	verifyUnit(t, root)
	const enabled = "/etc/systemd/system/multi-user.target.wants/robotsgate.service"
	if !exists(root, enabled) {
		t.Error("the service is not enabled")
	}

	// The configuration of an operator.
	edited := strings.Replace(read(t, root, configFile), "listen: 127.0.0.1:9309", "listen: 127.0.0.1:0", 1) +
		"admin: {listen: \"\"}\negress: {allow_private: [127.0.0.0/8]}\n"
	write(t, filepath.Join(root, configFile), []byte(edited))
	gate := startUnit(t, root)
	gate.tryRequests(t, origin)
	gate.stop(t)
	for _, m := range regexp.MustCompile("(?m)^\\| `(/[^`]+)` \\|").FindAllStringSubmatch(read(t, "../..", "docs/deploy.md"), -1) {
		if !exists(root, m[1]) {
			t.Errorf("docs/deploy.md names %s, which is not there", m[1])
		}
	}
	key := read(t, root, dataDir+"/ca-key.pem")
	wantOwned(t, root, dataDir+"/ca-key.pem", "-rw------- robotsgate")

	in(t, root, "dpkg", "--install", "/new.deb")
	kept := func() {
		t.Helper()
		if read(t, root, configFile) != edited || read(t, root, dataDir+"/ca-key.pem") != key || !exists(root, auditLog) {
			t.Error("the configuration, the CA's key or the audit log is not what it was")
		}
		wantOwned(t, root, dataDir+"/ca-key.pem", "-rw------- robotsgate")
	}
	kept()
	if got := in(t, root, "robotsgate", "version"); !strings.HasPrefix(got, "robotsgate v0.2.0,") {
		t.Errorf("after the upgrade: %s", got)
	}
	gate = startUnit(t, root)
	gate.tryRequests(t, origin)
	gate.stop(t)
	if n := origin.robots.Load(); n != 1 {
		t.Errorf("robots.txt was fetched %d times: the snapshot did not survive the upgrade", n)
	}
	kept()

	in(t, root, "dpkg", "--remove", "robotsgate")
	kept()
	if exists(root, "/usr/bin/robotsgate") || exists(root, unitFile) {
		t.Error("the program is still there after the removal")
	}
	in(t, root, "dpkg", "--install", "/new.deb")
	kept()
	in(t, root, "dpkg", "--purge", "robotsgate")
	for _, name := range []string{"/etc/robotsgate", dataDir, filepath.Dir(auditLog), enabled} {
		if exists(root, name) {
			t.Errorf("%s is still there after the purge", name)
		}
	}
}

// verifyUnit lets systemd-analyze read the unit. The binary of the unit is in root.
func verifyUnit(t *testing.T, root string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "robotsgate.service")
	write(t, file, []byte(strings.Replace(read(t, root, unitFile), "=/usr/bin/robotsgate", "="+root+"/usr/bin/robotsgate", 1)))
	if out := output(t, "systemd-analyze", "verify", file); strings.Contains(out, "robotsgate") {
		t.Errorf("systemd-analyze verify: %s", out)
	}
}

// An origin has a robots.txt that disallows /private, and counts how often it is fetched.
type origin struct {
	url    string
	robots atomic.Int32
}

func newOrigin(t *testing.T) *origin {
	o := &origin{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			o.robots.Add(1)
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
		}
	}))
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

// A gate is a process that runs as the unit says.
type gate struct {
	cmd    *exec.Cmd
	client *http.Client
}

// startUnit starts the command of the unit in root as the user of the unit, since systemd itself
// does not run there.
func startUnit(t *testing.T, root string) *gate {
	t.Helper()
	setting := func(key string) string {
		m := regexp.MustCompile(`(?m)^` + key + `=(.+)$`).FindStringSubmatch(read(t, root, unitFile))
		if m == nil {
			t.Fatalf("the unit has no %s", key)
		}
		return m[1]
	}
	id := func(option string) uint32 {
		n, err := strconv.ParseUint(strings.TrimSpace(in(t, root, "id", option, setting("User"))), 10, 32)
		if err != nil || n == 0 {
			t.Fatalf("the service would run as user %d: %v", n, err)
		}
		return uint32(n)
	}
	return start(t, root, strings.Fields(setting("ExecStart")), id("-u"), id("-g"))
}

// start starts a command in root as a user and a group.
func start(t *testing.T, root string, args []string, uid, gid uint32) *gate {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	var log strings.Builder
	lines := bufio.NewScanner(reader)
	for lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		if m := regexp.MustCompile(` listens on (http://127\.0\.0\.1:\d+)`).FindStringSubmatch(lines.Text()); m != nil {
			proxy, err := url.Parse(m[1])
			if err != nil {
				t.Fatal(err)
			}
			go io.Copy(io.Discard, reader)
			return &gate{cmd, &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}}
		}
	}
	t.Fatalf("the gate ended: %v\n%s", cmd.Wait(), log.String())
	return nil
}

func (g *gate) tryRequests(t *testing.T, o *origin) {
	t.Helper()
	for path, want := range map[string]int{"/": http.StatusOK, "/private": http.StatusForbidden} {
		resp, err := g.client.Get(o.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got status %d, want %d\n%s", path, resp.StatusCode, want, body)
		}
	}
}

func (g *gate) stop(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Wait(); err != nil {
		t.Error(fmt.Errorf("the gate ended with %w", err))
	}
}
